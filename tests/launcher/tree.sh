# Many hosts: agents start further agents in a tree. All functions of mpiexec work through several agents. If a process is killed, all
# processes below it in the tree end too.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
copy_client
make_local_shell
hosts=a,b,c,d,e,f,g
run_with_fanout() {
    fanout=$1
    shift
    run_mpiexec -fanout $fanout -launcher-exec "$T/shell" -hosts $hosts "$@"
}

for fanout in 1 2 3; do
    run_with_fanout $fanout -n 14 "$CLIENT" exchange
    expect_rc 0
    [ "$(grep -c 'exchange ok' "$T/out")" -eq 14 ] || fail "$last: not all ranks came through"
done
run_with_fanout 2 -l sh -c 'echo $FISHPLATE_HOST'
expect_out "[0] a" "[1] b" "[2] c" "[3] d" "[4] e" "[5] f" "[6] g"
run_with_fanout 2 head -c 1000000 /dev/zero
[ "$(wc -c <"$T/out")" -eq 7000000 ] || fail "$last: output was lost"
head -c 1000000 /dev/zero >"$T/input"
run_mpiexec -stdin all -fanout 2 -launcher-exec "$T/shell" -hosts $hosts wc -c <"$T/input"
expect_out 1000000 1000000 1000000 1000000 1000000 1000000 1000000
run_with_fanout 1 "$CLIENT" crash 6
expect_rc 139
expect_err "Rank 6 on host g"
run_with_fanout 2 "$CLIENT" abort 5 7 "it is enough"
expect_rc 7
expect_err "Rank 5 on host f"
run_with_fanout 2 no-such-program
expect_rc 127
run_with_fanout 2 -timeout 1 sleep 1000
expect_rc 124
expect_err "rank 6 on host g"

# Each agent is started by its parent in the tree: two by mpiexec, the others by these two.
cat >"$T/counting" <<END
#!/bin/sh
echo "\$1 from \${COUNTED-here}" >>"$T/count"
COUNTED=\$1
export COUNTED
shift
exec "\$@"
END
chmod +x "$T/counting"
run_mpiexec -fanout 2 -launcher-exec "$T/counting" -hosts $hosts true
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
run_mpiexec -fanout 2 -launcher-exec "$T/broken" -hosts $hosts sleep 1000
expect_rc 1
expect_err "Host d, with 1 rank, was lost: its agent could not be started: \`$T/broken d\` exited with status 9; it must log in without a password, and mpiexec must have the same path there"

# Starts a job whose ranks wait, and reads their process ids.
mkfifo "$T/up"
start_waiting_job() {
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
    start_waiting_job
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
start_waiting_job
last="killing mpiexec"
kill -KILL $job
wait $job 2>/dev/null
for pid in $pids; do
    expect_gone "$pid"
done
start_waiting_job
last="interrupting mpiexec"
kill -INT $job
wait $job 2>/dev/null
for pid in $pids; do
    expect_gone "$pid"
done
expect_no_client
finish_test
