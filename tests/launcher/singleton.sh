# Without a launcher: a job of one rank if that is intended, else an error that names the remedy.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
run_client() {
    last="client $*"
    rc=0
    env -u PMI_FD "$@" >"$T/out" 2>"$T/err" || rc=$?
}
run_client "$CLIENT" exchange
expect_rc 0
run_client "$CLIENT" place
expect_out "rank 0 of 1 node 0 of 1 local 0 of 1 vnode -1 appnum -1 host $(hostname) launcher singleton"
run_client "$CLIENT" abort 0 4 "no input"
expect_rc 4
expect_err "no input"
run_client SLURM_PROCID=0 "$CLIENT" place
expect_rc 9
expect_err "srun --mpi=pmi2"
run_client SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 "$CLIENT" place
expect_rc 0
run_client SLURM_PROCID=0 SLURM_JOB_ID=7 "$CLIENT" place # a batch script
expect_rc 0
run_client PMIX_NAMESPACE=x "$CLIENT" place
expect_rc 9
expect_err "PMIx"
# Other launchers without a PMI or PMIx server.
run_client MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2 "$CLIENT" place
expect_rc 9
expect_err "MVAPICH2's mpirun_rsh"
run_client MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=1 "$CLIENT" place
expect_rc 0
run_client OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "$CLIENT" place
expect_rc 9
expect_err "unset OMPI_COMM_WORLD_RANK to run it alone"
run_client PMI_FD=77 PMI_RANK=0 PMI_SIZE=2 "$CLIENT" place
expect_rc 9
expect_err "PMI_FD"
# An mpiexec of another version is reported, and still works.
run_mpiexec -n 2 -genv X 1 sh -c "FISHPLATE_LAUNCHER=0.0.1 exec '$CLIENT' exchange"
expect_rc 0
expect_err "0.0.1"
finish_test
