# Spawned processes belong to the job: their output, failures, signals and timeouts. Also jobs of two mpiexec commands connect.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
cp "$SPAWNER" "$T/spawner"
export FISHPLATE_NAME_DIR="$T/names"

# expect_no_spawner: no process of the spawner is left.
expect_no_spawner() {
    for pid in $(pgrep -f "^$T/spawner" || true); do
        expect_gone "$pid"
    done
}

run_mpiexec -n 2 "$T/spawner" hello
expect_rc 0
sort "$T/out" >"$T/sorted" && mv "$T/sorted" "$T/out"
expect_out "child 0 of 2" "child 1 of 2"
# The output lines of spawned ranks name their job.
run_mpiexec -l -n 1 "$T/spawner" hello
expect_rc 0
grep -q '^\[1\.1\] child 1 of 2$' "$T/out" || fail "$last: no line of job 1, rank 1"

# On another host of the user's choice, through its agent.
make_local_shell
run_mpiexec -launcher-exec "$T/shell" -hosts a:1,b:1 -n 1 "$T/spawner" hello b
expect_rc 0
sort "$T/out" >"$T/sorted" && mv "$T/sorted" "$T/out"
expect_out "child 0 of 2 on b" "child 1 of 2 on b"
# Parents on two hosts and children on two hosts: without an adapter each job has its own software fabric, and the jobs connect
# through this machine's memory.
run_mpiexec -timeout 100 -launcher-exec "$T/shell" -hosts a:1,b:1 -n 2 "$T/spawner" hello
expect_rc 0
sort "$T/out" >"$T/sorted" && mv "$T/sorted" "$T/out"
expect_out "child 0 of 2" "child 1 of 2"

# No process has environment variables or the name of the parents' port in its arguments, which every user can read.
run_mpiexec -n 1 "$T/spawner" secret
expect_rc 0
expect_out "child 0: 0 leaks" "child 1: 0 leaks"

# A spawned process fails: the whole job ends with its status.
run_mpiexec -n 2 "$T/spawner" fail
expect_rc 7
expect_no_spawner

# Timeouts and signals reach spawned processes.
run_mpiexec -timeout 2 -n 1 "$T/spawner" stay /dev/null
expect_rc 124
expect_no_spawner
mkfifo "$T/up"
exec 3<>"$T/up"
"$MPIEXEC" -n 1 "$T/spawner" stay "$T/up" >"$T/out" 2>"$T/err" 3>&- &
pid=$!
last="mpiexec -n 1 spawner stay"
for _ in 1 2 3; do
    read -r _ <&3
done
kill -TERM $pid
rc=0
wait $pid || rc=$?
[ "$rc" -ge 128 ] || fail "$last, ended by TERM: exit status $rc, expected 128 or more"
expect_no_spawner

# A server and its clients, started by different mpiexec commands, with different numbers of ranks.
mkfifo "$T/said"
exec 4<>"$T/said"
"$MPIEXEC" -n 2 "$T/spawner" serve ocean >"$T/said" 2>"$T/err" 4>&- &
pid=$!
last="mpiexec -n 2 spawner serve ocean"
read -r line <&4
[ "$line" = published ] || fail "$last: it said '$line'"
[ "$(stat -c %a "$T/names")" = 700 ] || fail "the folder of names has mode $(stat -c %a "$T/names")"
# A client without the port's key is refused, and the server continues to wait.
run_mpiexec -n 1 "$T/spawner" guess ocean
expect_rc 0
expect_out "refused"
run_mpiexec -n 3 "$T/spawner" ask ocean
expect_rc 0
read -r line <&4
[ "$line" = "sum 6" ] || fail "the server said '$line', expected 'sum 6'"
rc=0
wait $pid || rc=$?
expect_rc 0
run_mpiexec -n 1 "$T/spawner" ask ocean
[ "$rc" -ne 0 ] || fail "$last: a name that was unpublished was found"
expect_no_spawner

# MPI_UNIVERSE_SIZE: the number of processes that a program may expect to start.
run_mpiexec -usize 7 -n 1 "$T/spawner" universe : -n 1 "$T/spawner" universe
expect_rc 0
sort "$T/out" >"$T/sorted" && mv "$T/sorted" "$T/out"
expect_out "universe 7 program 0" "universe 7 program 1"
finish_test
