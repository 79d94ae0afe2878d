# Jobs of srun on four Slurm nodes, with each PMI server of srun, and the messages without one.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
run_guarded
. "$TESTS/slurm_up.sh"

kinds=
for kind in pmix pmi2; do
    srun --mpi=list 2>&1 | grep -qw $kind && kinds="$kinds $kind"
done
[ -n "$kinds" ] || skip "this srun has neither pmix nor pmi2"
host=$(hostname)
copy_client

for kind in $kinds; do
    name=$kind
    [ $kind = pmix ] || name=pmi1
    run_launcher timeout 60 srun -N4 -n8 --mpi=$kind "$CLIENT" exchange
    expect_rc 0
    [ "$(grep -c 'exchange ok' "$T/out")" -eq 8 ] || fail "$last: not all ranks came through"
    run_launcher timeout 60 srun -N2 -n4 --mpi=$kind "$CLIENT" place
    expect_rc 0
    for place in "rank 0 of 4 node 0 of 2 local 0 of 2" "rank 3 of 4 node 1 of 2 local 1 of 2"; do
        grep "$place vnode -1" "$T/out" | grep -q "host $host launcher $name" || fail "$last: not $place"
    done
    run_launcher timeout 60 srun -N1 -n1 --mpi=$kind "$CLIENT" exchange
    expect_rc 0
    run_mpi_programs srun -N1 -n4 --mpi=$kind
    ! has_softib || run_mpi_programs srun -N4 -n4 --mpi=$kind # between nodes
    # Unequal numbers of ranks on two nodes.
    if has_softib; then
        for order in block cyclic; do
            run_launcher timeout 60 srun -N2 -n3 --distribution=$order --mpi=$kind "$MPI_TESTS/mpi_p2p_order"
            expect_rc 0
        done
    fi
    # One rank fails in MPI_Init while the other waits for it there.
    run_launcher timeout 60 srun -N1 -n2 --mpi=$kind sh -c 'FISHPLATE_SHM_RING=$((65536 << SLURM_PROCID)) exec "$0"' "$MPI_TESTS/mpi_p2p_order"
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
    expect_err "disagree on the layout of shared memory"
    # Two simultaneous jobs do not affect each other.
    srun -N1 -n3 --mpi=$kind --overlap "$MPI_TESTS/mpi_p2p_order" >"$T/other" 2>&1 &
    other=$!
    run_launcher timeout 60 srun -N1 -n3 --mpi=$kind --overlap "$MPI_TESTS/mpi_p2p_order"
    expect_rc 0
    wait $other || fail "the second of two jobs failed: $(tail -n 3 "$T/other")"
    # Slurm's PMIx cannot spawn; its PMI-2 spawns by a step that waits for free processors: an error reports this, and no rank waits
# forever.
    FISHPLATE_INIT_TIMEOUT=5 run_launcher timeout 60 srun -N1 -n1 --mpi=$kind "$SPAWNER" hello
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
    expect_err "MPI_ERR_SPAWN"
    run_launcher timeout 60 srun -N2 -n4 --mpi=$kind "$CLIENT" abort 1 5 "it is enough"
    [ "$rc" -ne 0 ] || fail "$last: an abort went unnoticed"
    expect_err "Rank 1 on $host ended the job with code 5: it is enough"
    expect_no_client
done

# Hosts are checked before a job: as a job of srun, and from inside an allocation, where mpiexec finds the nodes itself.
if has_softib && [ -x "$(dirname "$MPIEXEC")/fishplate" ]; then
    tool=$(dirname "$MPIEXEC")/fishplate
    for way in "srun -N4 -n4 --mpi=${kinds##* } $tool check --json" "salloc -Q -N4 -n4 $tool check --json"; do
        run_launcher timeout 100 $way
        [ "$rc" -le 1 ] || fail "$last: exit status $rc"
        [ "$(grep -o '"memlock"' "$T/out" | wc -l)" -eq 4 ] || fail "$last: not all four hosts"
    done
fi

# A rank that dies ends the job without -K: a rank that shares its node, a rank alone on its node, a killed rank, and a rank that
# exits without MPI_Finalize.
for kind in $kinds; do
    for nodes in 1 2; do
        run_launcher timeout 60 srun -N$nodes -n2 --mpi=$kind "$CLIENT" crash 1
        [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc: the others went on waiting"
        expect_no_client
    done
    mkfifo "$T/killed.$kind"
    exec 6<>"$T/killed.$kind"
    last="killing a rank of srun --mpi=$kind"
    srun -N2 -n2 --mpi=$kind "$CLIENT" stay "$T/killed.$kind" >"$T/out" 2>"$T/err" 6>&- &
    job=$!
    read -r pid1 <&6
    read -r pid2 <&6
    kill -KILL "$pid1"
    expect_gone "$pid2"
    wait $job
    exec 6>&-
    # The rank's death watcher or Slurm's own PMIx ends the step and prints the reason.
    grep -Eq 'ended before MPI_Finalize; the job is ended|task [0-9]+: Killed' "$T/err" ||
        fail "$last: no message names the rank that was killed"
    run_launcher timeout 60 srun -N2 -n4 --mpi=$kind "$CLIENT" exit 2 0
    expect_err "Rank 2 on $host ended before MPI_Finalize"
    expect_no_client
done

# mpiexec inside an allocation uses its hosts, through srun.
run_launcher timeout 60 salloc --quiet -N4 "$MPIEXEC" -n 8 -ppn 2 "$CLIENT" exchange
expect_rc 0
[ "$(grep -c 'exchange ok' "$T/out")" -eq 8 ] || fail "$last: not all ranks came through"
run_launcher timeout 60 salloc --quiet -N3 -n5 "$MPIEXEC" -l sh -c 'echo $FISHPLATE_HOST'
expect_rc 0
[ "$(sed 's/.*] //' "$T/out" | sort | uniq -c | awk '{ printf "%s ", $1 }')" = "2 2 1 " ] ||
    fail "$last: the ranks are not where Slurm wants them"
! has_softib || run_mpi_programs salloc --quiet -N4 "$MPIEXEC" -n 4 -ppn 1
run_launcher timeout 60 salloc --quiet -N2 "$MPIEXEC" -n 4 -ppn 2 "$CLIENT" crash 3
expect_rc 139
expect_err "Rank 3 on host n"
printf '#!/bin/sh\n"%s" -l sh -c "echo \$FISHPLATE_HOST \$SLURM_STEP_ID"\n' "$MPIEXEC" >"$T/batch"
run_launcher timeout 60 sbatch --quiet --wait -N2 -n3 --nodelist=n0,n1 --output="$T/batch.out" "$T/batch"
expect_rc 0
printf '[0] n0\n[1] n0\n[2] n1\n' >"$T/wanted"
grep '^\[' "$T/batch.out" | sort | cmp -s - "$T/wanted" || fail "$last: $(cat "$T/batch.out")"
expect_no_client

# Without a PMI server each task would be a separate job.
run_launcher timeout 60 srun -n2 --mpi=none "$CLIENT" place
[ "$rc" -ne 0 ] || fail "$last: two singletons ran"
expect_err "srun --mpi=pmix or srun --mpi=pmi2"
run_launcher timeout 60 srun -n3 --mpi=none "$MPI_TESTS/mpi_p2p_order"
[ "$rc" -ne 0 ] || fail "$last: three singletons ran"
[ "$(grep -c 'srun offers no PMI server' "$T/err")" -eq 1 ] || fail "$last: the advice should be given once"
run_launcher timeout 60 srun -n1 --mpi=none "$CLIENT" place
expect_rc 0

# A killed slurmstepd cannot end its tasks: they detect its death themselves.
for kind in $kinds; do
    mkfifo "$T/up.$kind"
    exec 6<>"$T/up.$kind"
    srun -N2 -n2 --mpi=$kind "$CLIENT" stay "$T/up.$kind" >"$T/out" 2>"$T/err" 6>&- &
    job=$!
    read -r pid1 <&6
    read -r pid2 <&6
    last="killing the slurmstepd of a job with $kind"
    kill -KILL "$(ps -o ppid= -p "$pid1" | tr -d ' ')"
    expect_gone "$pid1"
    scancel --quiet --user="$(id -un)"
    expect_gone "$pid2"
    # shellcheck disable=SC2046 # several pids
    kill -KILL $job $(ps -o pid= --ppid $job) 2>/dev/null
    wait $job 2>/dev/null
    exec 6>&-
done
expect_no_client
finish_test
