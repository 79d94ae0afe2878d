# The command line: the help text, and error messages that suggest the probably intended option.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

run_mpiexec --help
expect_rc 0
for word in -n -ppn -hosts -hostfile -genv -wdir -configfile -prepend-rank -outfile-pattern -bind-to -map-by \
    -launcher-exec -vnodes -hcas -timeout -stdin; do
    grep -q -- "$word" "$T/out" || fail "--help does not tell of $word"
done
run_mpiexec --version
expect_rc 0
grep -q '^mpiexec (Fishplate) [0-9]' "$T/out" || fail "--version prints something else"

# expect_suggestion MISTYPED INTENDED
expect_suggestion() {
    run_mpiexec "$1" 2 true
    expect_rc 2
    expect_err "There is no option $1."
    expect_err "Did you mean $2?"
    [ ! -s "$T/out" ] || fail "$last: printed to standard output"
}
expect_suggestion -vnode -vnodes
expect_suggestion --hostfil -hostfile
expect_suggestion -bindto -bind-to
expect_suggestion --time-out -timeout
expect_suggestion -prepend -prepend-rank
expect_suggestion -np4 "-np 4"
run_mpiexec -completely-unknown true
expect_rc 2
grep -q "Did you mean" "$T/err" && fail "$last: guessed without reason"

run_mpiexec
expect_rc 2
expect_err "No program was named"
run_mpiexec -n 2
expect_rc 2
for bad in 0 -1 x 1.5 '' 99999999999; do
    run_mpiexec -n "$bad" true
    expect_rc 2
    expect_err "whole number"
done
run_mpiexec -n
expect_rc 2
run_mpiexec -genv NAME -n 1 true
expect_rc 2
expect_err "-genv NAME needs a value after it"
run_mpiexec -genv NAME=-n -n 1 sh -c 'echo "<$NAME>"'
expect_rc 0
expect_out "<-n>"
run_mpiexec -n 1 true :
expect_rc 2
expect_err "after the last colon"
run_mpiexec -n 1 : -n 1 true
expect_rc 2
expect_err "before a colon"
for file in -f -rankfile -configfile; do
    run_mpiexec $file "$T" -n 1 true
    expect_rc 2
    expect_err "cannot be read: Is a directory"
done
run_mpiexec -bind-to chair true
expect_rc 2
expect_err "core, socket"
run_mpiexec -map-by chair true
expect_rc 2
run_mpiexec -vnodes 2 -hosts a,b true
expect_rc 2
for bad in 0 17 x 2x 2y1GB/s -2 1GB ports=9 lmc=8 lmc= latency=2 latency=-1us colour=red bus=1 pin=1 8,9 1,18446744073709551615; do
    run_mpiexec -vnodes 2 -hcas "$bad" true
    expect_rc 2
    expect_err "-hcas: "
done
for option in -outfile-pattern -errfile-pattern -prepend-pattern; do
    run_mpiexec $option "$T/o.%q" -n 2 true
    expect_rc 2
    expect_err 'after % there is r (the rank), h (its host) or %, not "q"'
done
run_mpiexec -hcas 2 true
expect_rc 2
expect_err "set the number of nodes with -vnodes"
run_mpiexec -vnodes 2 -hcas 2 -genv SOFTIB_FABRIC "nodes=2 hcas=2" true
expect_rc 2
expect_err "describe the same adapters"
run_mpiexec -vnodes 2 -hcas 2 -env SOFTIB_FABRIC "rate=1GB/s" true
expect_rc 2

# Two dashes, an equals sign, the end of options, spellings of other launchers.
run_mpiexec --np=2 --tag-output -- echo text
expect_out "[0] text" "[1] text"
run_mpiexec --allow-run-as-root --oversubscribe -np 3 echo many
expect_out many many many
finish_test
