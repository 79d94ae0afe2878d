# Several programs in one job, on the command line and from a file; environment and working directory of each.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
show='echo $PMI_RANK $PMI_SIZE $PMI_APPNUM ${A-none} ${B-none}'

run_mpiexec -n 1 sh -c "$show" : -n 2 sh -c "$show"
expect_out "0 3 0 none none" "1 3 1 none none" "2 3 1 none none"
run_mpiexec sh -c "$show" : sh -c "$show"
expect_out "0 2 0 none none" "1 2 1 none none"
run_mpiexec -genv A all -n 1 -env B first sh -c "$show" : -n 1 sh -c "$show"
expect_out "0 2 0 all first" "1 2 1 all none"
run_mpiexec -genv A=1 -n 1 -env B=x=y sh -c "$show"
expect_out "0 1 0 1 x=y"
A=outer run_mpiexec -n 1 -env A inner sh -c "$show"
expect_out "0 1 0 inner none"
A=outer run_mpiexec -n 1 sh -c "$show"
expect_out "0 1 0 outer none"
A=outer run_mpiexec -n 1 -x A -x B=2 sh -c "$show"
expect_out "0 1 0 outer 2"
A=outer B=outer run_mpiexec -n 1 -genvlist B,PATH sh -c "$show"
expect_out "0 1 0 none outer"
A=outer run_mpiexec -n 1 -genvnone /bin/sh -c "$show"
expect_out "0 1 0 none none"
run_mpiexec -n 1 -x NO_SUCH_VARIABLE true
expect_rc 2
expect_err NO_SUCH_VARIABLE

mkdir "$T/one" "$T/two"
run_mpiexec -n 1 -wdir "$T/one" pwd : -n 1 -wdir "$T/two" pwd
expect_out "$(cd "$T/one" && pwd -P)" "$(cd "$T/two" && pwd -P)"
cd "$T" || exit 1
run_mpiexec -n 1 -wdir one pwd
expect_out "$(cd "$T/one" && pwd -P)"
# A program in the current folder, given without a path.
printf '#!/bin/sh\necho found\n' >"$T/my-program"
chmod +x "$T/my-program"
run_mpiexec -n 1 my-program
expect_out found
# A script without a #! line.
echo 'echo plain $1' >"$T/plain"
chmod +x "$T/plain"
run_mpiexec -n 1 ./plain word
expect_out "plain word"
echo 'echo $# ${300}' >"$T/plain"
run_mpiexec -n 1 ./plain $(seq 300)
expect_out "300 300"

cat >"$T/config" <<'END'
# two programs
-n 1 -env A "two words" sh -c 'echo $PMI_RANK $A'

-n 2 sh -c 'echo $PMI_RANK of $PMI_SIZE'   # and a comment
END
run_mpiexec -configfile "$T/config"
expect_out "0 two words" "1 of 3" "2 of 3"
run_mpiexec -configfile "$T/nowhere"
expect_rc 2
expect_err "$T/nowhere"
: >"$T/empty"
run_mpiexec -configfile "$T/empty"
expect_rc 2
run_mpiexec -n 2 true :
expect_rc 2
finish_test
