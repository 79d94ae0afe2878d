# Standard input goes to rank 0, or to the rank that -stdin names; unread input remains for other programs.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_local_shell

echo hello >"$T/in"
run_mpiexec -l -n 3 cat <"$T/in"
expect_out "[0] hello"
run_mpiexec -l -n 3 -stdin 2 cat <"$T/in"
expect_out "[2] hello"
run_mpiexec -l -n 3 -stdin all cat <"$T/in"
expect_out "[0] hello" "[1] hello" "[2] hello"
run_mpiexec -l -n 3 -stdin none cat <"$T/in"
[ ! -s "$T/out" ] || fail "$last: somebody read standard input"
run_mpiexec -n 2 -stdin 2 cat <"$T/in"
expect_rc 2
run_mpiexec -n 2 -stdin sometimes cat <"$T/in"
expect_rc 2

# Through agents, with more data than pipes hold.
head -c 2000000 /dev/zero >"$T/big"
run_mpiexec -n 2 -launcher-exec "$T/shell" -hosts a,b wc -c <"$T/big"
expect_out 2000000 0
run_mpiexec -n 2 -stdin all wc -c <"$T/big"
expect_out 2000000 2000000
run_mpiexec -n 2 -launcher-exec "$T/shell" -hosts a,b -stdin all wc -c <"$T/big"
expect_out 2000000 2000000
cat "$T/big" | run_mpiexec -n 2 wc -c
run_mpiexec -n 2 true <"$T/big" # no rank reads
expect_rc 0
run_mpiexec -n 2 -stdin all true <"$T/big"
expect_rc 0

# A shell loop that reads from the same file loses no input.
printf '1\n2\n3\n' >"$T/list"
while read -r line; do
    run_mpiexec -n 2 true
    echo "$line"
done <"$T/list" >"$T/lines"
cmp -s "$T/list" "$T/lines" || fail "mpiexec ate the input of a loop"
finish_test
