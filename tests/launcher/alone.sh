# A program started without mpiexec spawns processes: an mpiexec is started for them, and a failure of one side ends the other.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
cp "$SPAWNER" "$T/spawner"

# gone: no process of the spawner is left, nor the mpiexec of its children.
gone() {
    for pid in $(pgrep -f "$T/spawner" || true); do
        expect_gone "$pid"
    done
}

launch "$T/spawner" hello
expect_rc 0
expect_out "child 0 of 2" "child 1 of 2"
gone
# In a batch script: the children run on this machine, not on the hosts of the allocation.
launch env SLURM_JOB_ID=7 SLURM_JOB_NODELIST='nowhere[1-2]' SLURM_NNODES=2 'SLURM_TASKS_PER_NODE=2(x2)' "$T/spawner" hello
expect_rc 0
expect_out "child 0 of 2" "child 1 of 2"
# All communication between parents and children; arguments, several levels, many spawns in a row.
for program in mpi_dyn_spawn mpi_dyn_at_once mpi_dyn_flat; do
    launch timeout 200 "$MPI_TESTS/$program"
    expect_rc 0
done

# Neither variables nor the name of the parents' port are arguments of a process.
launch "$T/spawner" secret
expect_rc 0
expect_out "child 0: 0 leaks" "child 1: 0 leaks"

# A child fails: no process waits for it.
launch timeout 100 "$T/spawner" fail
expect_rc 143
expect_err "Processes that were spawned have failed"
gone

# The program is killed: its children end too.
pipes
"$T/spawner" stay "$T/up" >"$T/out" 2>"$T/err" 6>&- 7>&- &
pid=$!
last="spawner stay"
for _ in 1 2 3; do
    read -r _ <&6
done
kill -KILL $pid
wait $pid 2>/dev/null
gone
finish
