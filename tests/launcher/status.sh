# Exit statuses, and the message of each kind of failure.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

run_mpiexec -n 3 true
expect_rc 0
expect_no_err
run_mpiexec -n 3 sh -c 'exit $((PMI_RANK == 1 ? 7 : 0))'
expect_rc 7
expect_err "Rank 1 on host"
expect_err "exited with status 7"
run_mpiexec -oversubscribe -n 3 sh -c 'if [ $PMI_RANK = 2 ]; then kill -SEGV $$; fi; exec sleep 1000'
expect_rc 139
expect_err "Rank 2 on host $(hostname)"
expect_err "signal 11 (SIGSEGV"
[ "$(wc -l <"$T/err")" -eq 1 ] || fail "$last: one message was expected"
run_mpiexec -n 3 sh -c 'if [ $PMI_RANK = 0 ]; then kill -KILL $$; fi; exec sleep 1000'
expect_rc 137
expect_err "signal 9"

# With the library: before and after finalize.
run_mpiexec -n 3 "$CLIENT" exit 1 5
expect_rc 5
expect_err "before calling MPI_Finalize"
run_mpiexec -n 3 "$CLIENT" exit 1 0
expect_rc 1
expect_err "Rank 1 on host"
expect_err "without calling MPI_Finalize"
run_mpiexec -n 3 "$CLIENT" late 1 6
expect_rc 6
expect_err "Rank 1 on host $(hostname) exited with status 6 after MPI_Finalize."
run_mpiexec -oversubscribe -n 4 sh -c '"$0" exchange; exit $((PMI_RANK > 1 ? 4 : 0))' "$CLIENT"
expect_rc 4
expect_err "2 ranks exited with a nonzero status after MPI_Finalize, the first with 4: ranks 2-3 on host"
[ "$(wc -l <"$T/err")" -eq 1 ] || fail "$last: one message was expected"
run_mpiexec -n 3 "$CLIENT" crash 2
expect_rc 139
run_mpiexec -n 3 "$CLIENT" abort 1 42 "the input file is empty"
expect_rc 42
expect_err "Rank 1 on host"
expect_err "code 42: the input file is empty."
expect_err "The other running ranks were ended."
run_mpiexec -n 2 "$CLIENT" abort 0 256
expect_rc 1
expect_err "The other running rank was ended."
run_mpiexec -n 1 "$CLIENT" abort 0 3
expect_rc 3
! grep -q "other running" "$T/err" || fail "$last: the rank that aborted was counted among the others"

# A process that ends without MPI_Init while others wait for it.
run_mpiexec -n 3 "$CLIENT" leaves 1
expect_rc 1
expect_err "Rank 1 on host"

# The same if ranks wait without a request to mpiexec, in both orders of the events.
run_mpiexec -n 2 sh -c '[ $PMI_RANK = 0 ] || exit 0; exec "$0" stay /dev/null' "$CLIENT"
expect_rc 1
expect_err "Rank 1 on host $(hostname) ended without calling MPI_Init, where other ranks wait for it."
if [ -x "$MPI_TESTS/mpi_p2p_order" ]; then
    run_mpiexec -n 2 sh -c '[ $PMI_RANK = 0 ] || exit 0; exec "$0"' "$MPI_TESTS/mpi_p2p_order"
    expect_rc 1
    expect_err "ended without calling MPI_Init"
fi

# Limits of the user's shell.
run_mpiexec -n 2 sh -c 'ulimit -f 1; exec head -c 100000 /dev/zero >'"$T/large"
expect_rc 153
expect_err "SIGXFSZ"
expect_err "ulimit -f"

# Programs that cannot be started.
run_mpiexec -n 2 no-such-program-anywhere
expect_rc 127
expect_err "no-such-program-anywhere, neither in a folder of PATH nor in"
run_mpiexec -n 2 "$T"
expect_rc 126
expect_err "Is a directory"
: >"$T/plain"
run_mpiexec -n 2 "$T/plain"
expect_rc 126
expect_err "Permission denied"
printf '#!/no/such/interpreter\n' >"$T/script"
chmod +x "$T/script"
run_mpiexec -n 2 "$T/script"
expect_rc 127
run_mpiexec -n 2 -wdir "$T/nowhere" true
expect_rc 1
expect_err "$T/nowhere"

# A rank that sends invalid requests to the PMI server.
run_mpiexec -n 2 bash -c 'echo nonsense >&$PMI_FD; exec sleep 1000'
expect_rc 1
expect_err "PMI version 1"
finish_test
