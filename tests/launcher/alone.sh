# A program started without mpiexec spawns processes: an mpiexec is started for them, and a failure of one side ends the other.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
cp "$SPAWNER" "$T/spawner"

# expect_no_spawner: no process of the spawner, and no mpiexec of its children, is left.
expect_no_spawner() {
    for pid in $(pgrep -f "$T/spawner" || true); do
        expect_gone "$pid"
    done
}

# The mpiexec of the children may print their output after the program has ended; therefore its end is awaited first.
run_launcher "$T/spawner" hello
expect_rc 0
expect_no_spawner
expect_out "child 0 of 2" "child 1 of 2"
# In a batch script: the children run on this machine, not on the hosts of the allocation.
run_launcher env SLURM_JOB_ID=7 SLURM_JOB_NODELIST='nowhere[1-2]' SLURM_NNODES=2 'SLURM_TASKS_PER_NODE=2(x2)' "$T/spawner" hello
expect_rc 0
expect_no_spawner
expect_out "child 0 of 2" "child 1 of 2"
# All kinds of communication between parents and children; arguments, several levels, many consecutive spawns.
for program in mpi_dyn_spawn mpi_dyn_spawn_threads mpi_dyn_spawn_resources; do
    run_launcher timeout 200 "$MPI_TESTS/$program"
    expect_rc 0
done

# No process has environment variables or the name of the parents' port in its arguments, which every user can read.
run_launcher "$T/spawner" secret
expect_rc 0
expect_no_spawner
expect_out "child 0: 0 leaks" "child 1: 0 leaks"

# A child fails: no process waits for it.
run_launcher timeout 100 "$T/spawner" fail
expect_rc 143
expect_err "Processes that were spawned have failed"
expect_no_spawner

# The program is killed: its children end too.
open_pipes
"$T/spawner" stay "$T/up" >"$T/out" 2>"$T/err" 6>&- 7>&- &
pid=$!
last="spawner stay"
for _ in 1 2 3; do
    read -r _ <&6
done
kill -KILL $pid
wait $pid 2>/dev/null
expect_no_spawner
finish_test
