# Many hosts: agents that start agents. Everything that works with one agent works through several, and after any process is
# killed, all processes below it in the tree end too.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
own_client
make_shell
hosts=a,b,c,d,e,f,g
tree() {
    fanout=$1
    shift
    run -fanout $fanout -launcher-exec "$T/shell" -hosts $hosts "$@"
}

for fanout in 1 2 3; do
    tree $fanout -n 14 "$CLIENT" exchange
    expect_rc 0
    [ "$(grep -c 'exchange ok' "$T/out")" -eq 14 ] || fail "$last: not all ranks came through"
done
tree 2 -l sh -c 'echo $FISHPLATE_HOST'
expect_out "[0] a" "[1] b" "[2] c" "[3] d" "[4] e" "[5] f" "[6] g"
tree 2 head -c 1000000 /dev/zero
[ "$(wc -c <"$T/out")" -eq 7000000 ] || fail "$last: output was lost"
head -c 1000000 /dev/zero >"$T/input"
run -stdin all -fanout 2 -launcher-exec "$T/shell" -hosts $hosts wc -c <"$T/input"
expect_out 1000000 1000000 1000000 1000000 1000000 1000000 1000000
tree 1 "$CLIENT" crash 6
expect_rc 139
expect_err "Rank 6 on host g"
tree 2 "$CLIENT" abort 5 7 "it is enough"
expect_rc 7
expect_err "Rank 5 on host f"
tree 2 no-such-program
expect_rc 127
tree 2 -timeout 1 sleep 1000
expect_rc 124
expect_err "rank 6 on host g"

# Agents are started by their parents in the tree: two from this host, the others from those two.
cat >"$T/counting" <<END
#!/bin/sh
echo "\$1 from \${COUNTED-here}" >>"$T/count"
COUNTED=\$1
export COUNTED
shift
exec "\$@"
END
chmod +x "$T/counting"
run -fanout 2 -launcher-exec "$T/counting" -hosts $hosts true
expect_rc 0
printf '%s\n' "a from here" "b from a" "c from b" "d from a" "e from here" "f from e" "g from e" >"$T/wanted"
sort "$T/count" | cmp -s - "$T/wanted" || fail "$last: $(sort "$T/count" | tr '\n' ';')"

# One host deep in the tree cannot be reached.
cat >"$T/broken" <<'END'
#!/bin/sh
[ "$1" != d ] || exit 9
shift
exec "$@"
END
chmod +x "$T/broken"
run -fanout 2 -launcher-exec "$T/broken" -hosts $hosts sleep 1000
expect_rc 1
expect_err "Host d, with 1 rank, was lost: its agent could not be started: \`$T/broken d\` exited with status 9"

# Starts a job whose ranks wait, and reads their process ids.
mkfifo "$T/up"
hold() {
    exec 6<>"$T/up"
    "$MPIEXEC" -fanout 2 -launcher-exec "$T/shell" -hosts $hosts "$CLIENT" stay "$T/up" >"$T/out" 2>"$T/err" 6>&- &
    job=$!
    pids=
    for i in 0 1 2 3 4 5 6; do
        read -r pid <&6
        pids="$pids $pid"
    done
    exec 6>&-
}
for host in a b; do
    hold
    for pid in $pids; do
        tr '\0' '\n' <"/proc/$pid/environ" | grep -q "^FISHPLATE_HOST=$host$" && victim=$pid
    done
    last="killing the agent on host $host"
    kill -KILL "$(ps -o ppid= -p "$victim" | tr -d ' ')"
    rc=0
    wait $job || rc=$?
    expect_rc 1
    expect_err "Host $host, with 1 rank, was lost"
    for pid in $pids; do
        expect_gone "$pid"
    done
done
hold
last="killing mpiexec"
kill -KILL $job
wait $job 2>/dev/null
for pid in $pids; do
    expect_gone "$pid"
done
hold
last="interrupting mpiexec"
kill -INT $job
wait $job 2>/dev/null
for pid in $pids; do
    expect_gone "$pid"
done
expect_no_client
finish
