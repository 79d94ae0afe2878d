# Output: nothing is lost silently, lines stay complete, a prefix begins each line, and a reader that closes the pipe ends the job.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

run_mpiexec -l -n 3 sh -c 'echo one; echo two'
expect_out "[0] one" "[0] two" "[1] one" "[1] two" "[2] one" "[2] two"
for name in -prepend-rank --prepend-rank --tag-output; do
    run_mpiexec $name -n 1 echo text
    expect_out "[0] text"
done
# A last line without newline, a line in several writes, empty lines.
run_mpiexec -l -n 2 sh -c 'printf a; printf "b\n\nc"'
expect_out "[0] ab" "[0] " "[0] c" "[1] ab" "[1] " "[1] c"
run_mpiexec -n 1 printf 'no newline'
printf 'no newline' | cmp -s - "$T/out" || fail "$last: output was changed"

# Standard error is separate.
run_mpiexec -l -n 2 sh -c 'echo out; echo err >&2'
expect_out "[0] out" "[1] out"
expect_err "[0] err"
expect_err "[1] err"

# A line of a megabyte stays one line with one prefix, while other ranks write too.
cat >"$T/long" <<'END'
#!/bin/sh
if [ $PMI_RANK = 0 ]; then
    head -c 1000000 /dev/zero | tr '\0' x
    echo
else
    seq 1000
fi
END
chmod +x "$T/long"
run_mpiexec -l -n 3 "$T/long"
expect_rc 0
[ "$(wc -l <"$T/out")" -eq 2001 ] || fail "$last: $(wc -l <"$T/out") lines, expected 2001"
[ "$(grep '^\[0\] ' "$T/out" | wc -c)" -eq 1000005 ] || fail "$last: the long line was split"
[ "$(grep -cE '^\[[12]\] [0-9]+$' "$T/out")" -eq 2000 ] || fail "$last: short lines were damaged"

# Much output from ranks that end at once; each rank's own order is kept.
run_mpiexec -n 4 sh -c 'seq $((PMI_RANK * 100000)) $((PMI_RANK * 100000 + 99999))'
expect_rc 0
[ "$(wc -l <"$T/out")" -eq 400000 ] || fail "$last: $(wc -l <"$T/out") lines, expected 400000"
seq 0 399999 >"$T/wanted"
sort -n "$T/out" | cmp -s - "$T/wanted" || fail "$last: lines were damaged"
for r in 0 1 2 3; do
    awk -v r=$r 'int($1 / 100000) == r { if ($1 <= last) exit 1; last = $1 } BEGIN { last = -1 }' "$T/out" ||
        fail "$last: the lines of rank $r are out of order"
done
last="a slow reader"
mkfifo "$T/go"
"$MPIEXEC" -n 2 head -c 5000000 /dev/zero | {
    : <"$T/go" # does not read until a line arrives
    wc -c
} >"$T/out" &
reader=$!
: >"$T/go"
wait $reader
[ "$(cat "$T/out")" -eq 10000000 ] || fail "$last got $(cat "$T/out") bytes, expected 10000000"

# If the reader closes the pipe, the job ends silently, as in any pipeline, unless an option makes it continue. `yes` never ends by itself.
last="a reader that left"
{
    rc=0
    timeout 60 "$MPIEXEC" -n 2 yes 2>"$T/err" || rc=$?
    echo $rc >"$T/rc"
} | head -n 1 >/dev/null
[ "$(cat "$T/rc")" -eq 141 ] || fail "$last: exit status $(cat "$T/rc"), expected 141"
expect_no_err
last="a reader that left a job that goes on"
{
    rc=0
    timeout 60 "$MPIEXEC" -keep-running -n 2 sh -c 'seq 200000; [ $PMI_RANK = 1 ] || : >'"$T/went-on" 2>"$T/err" || rc=$?
    echo $rc >"$T/rc"
} | head -n 1 >/dev/null
[ "$(cat "$T/rc")" -eq 0 ] || fail "$last: exit status $(cat "$T/rc"), expected 0"
[ -e "$T/went-on" ] || fail "$last: it did not go on"
expect_no_err

# Output that cannot be written for another reason is a failure that is reported once.
if [ -w /dev/full ]; then
    last="a full disk"
    rc=0
    "$MPIEXEC" -oversubscribe -n 2 sh -c 'seq 2000' >/dev/full 2>"$T/err" || rc=$?
    expect_rc 1
    expect_err "standard output cannot be written (No space left on device)"
    [ "$(wc -l <"$T/err")" -eq 1 ] || fail "$last: one message was expected"
    run_mpiexec -outfile-pattern /dev/full -n 2 sh -c 'echo text'
    expect_rc 1
    expect_err "/dev/full cannot be written"
fi
last="a file that may not grow"
rc=0
(
    ulimit -f 8
    "$MPIEXEC" -n 2 seq 100000 >"$T/big"
) 2>"$T/err" || rc=$?
expect_rc 1
expect_err "standard output cannot be written (File too large)"

# No standard output at all.
last="standard output closed"
"$MPIEXEC" -n 2 echo text >&- 2>"$T/err" || fail "$last: exit status $?"
last="everything closed"
"$MPIEXEC" -n 2 echo text <&- >&- 2>&- || fail "$last: exit status $?"

# Files.
run_mpiexec -outfile-pattern "$T/out.%r" -errfile-pattern "$T/err.%h.%r" -n 2 sh -c 'echo I am $PMI_RANK; echo E >&2'
expect_rc 0
[ "$(cat "$T/out.1")" = "I am 1" ] || fail "$last: $T/out.1 is wrong"
[ "$(cat "$T/err.$(hostname).0")" = "E" ] || fail "$last: the file for errors is wrong"
[ ! -s "$T/out" ] || fail "$last: output went to both places"
# Output printed before a failure is shown before the message about the failure: on one host, on two, and through agents.
make_local_shell
nodes=""
! has_softib || nodes="-vnodes 2"
for where in "" "$nodes" "-launcher-exec $T/shell -hosts a:2,b:1"; do
    for how in abort error crash kill exit; do
        for _ in 1 2 3; do
            rc=0
            last="mpiexec $where -n 3 printer $how"
            "$MPIEXEC" $where -n 3 "$PRINTER" $how >"$T/out" 2>&1 || rc=$?
            [ "$rc" -ne 0 ] || fail "$last: exit status 0"
            [ "$(grep -c '^rank [0-2] was here$' "$T/out")" -eq 3 ] || fail "$last: output of ranks is missing"
            said=$(grep -nE '^(mpiexec|fishplate): Rank 0 ' "$T/out" | head -1)
            [ -n "$said" ] || fail "$last: nothing was said about rank 0"
            [ "$(head -n "${said%%:*}" "$T/out" | grep -c '^rank [0-2] was here$')" -eq 3 ] ||
                fail "$last: output of ranks comes after the message"
        done
    done
done
finish_test
