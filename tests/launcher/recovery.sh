# Jobs that continue when ranks die: the ranks that are notified, on this host and on others, and the exit status of the job.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_local_shell
program=$MPI_TESTS/mpi_ft_coll
[ -x "$program" ] || exit 77

# The status is that of the surviving ranks; one line names the dead ranks.
run_mpiexec -enable-recovery -n 3 "$program"
expect_rc 0
expect_err "the others went on without them"
grep -q "rank 2 of 3 dies" "$T/out" || fail "$last: the last line of a rank that was killed is missing"
run_mpiexec --with-ft ulfm -n 3 "$program"
expect_rc 0
# If a surviving rank fails, the status is that of the first such rank.
run_mpiexec -disable-auto-cleanup -n 3 "$program"
expect_rc 137
# Without recovery the job ends.
run_mpiexec -n 3 "$program"
expect_rc 137
# Agents notify their ranks.
run_mpiexec -enable-recovery -launcher-exec "$T/shell" -hosts a:1,b:1,c:1 -n 3 "$program"
expect_rc 0
expect_err "on host b"
# A program that never called MPI_Init cannot go on.
run_mpiexec -enable-recovery -n 2 sh -c 'if [ $PMI_RANK = 1 ]; then exit 5; fi'
expect_rc 5
# No rank of the job and of its spawned jobs is left; then the death watchers end normally.
run_mpiexec -enable-recovery -n 2 "$SPAWNER" die
expect_rc 137
expect_err "nobody was left to go on"
run_mpiexec -enable-recovery -n 2 "$SPAWNER" leave
expect_rc 0
expect_out "child 0 of 2 goes on" "child 1 of 2 goes on"
# The surviving ranks are on another host than the dead ones, and its agent belongs to their job alone.
run_mpiexec -enable-recovery -launcher-exec "$T/shell" -hosts a:2,b:2 -n 2 "$SPAWNER" leave b
expect_rc 0
expect_out "child 0 of 2 goes on" "child 1 of 2 goes on"
run_mpiexec -enable-recovery -launcher-exec "$T/shell" -hosts a:2,b:2 -n 2 "$SPAWNER" lose b
expect_rc 0
expect_out "parent 0 of 2 goes on" "parent 1 of 2 goes on"

# A host is lost before its agent has confirmed a piece of standard input: the ranks of other hosts still receive the next piece.
if has_softib; then
    open_pipes
    mkfifo "$T/in" "$T/taken"
    exec 4<>"$T/in" 5<>"$T/taken"
    last="standard input after the loss of a host"
    {
        rc=0
        "$MPIEXEC" -timeout 60 -enable-recovery -stdin all -launcher-exec "$T/shell" -hosts a,b -n 2 sh -c \
            'exec 3<&0; [ $PMI_RANK = 1 ] || cat <&3 >"$1/taken" & exec "$0" "$1/up" "$1/go" 1' "$LOST" "$T" \
            <"$T/in" >"$T/out" 2>"$T/err" 4>&- 5>&- 6>&- 7>&- || rc=$?
        echo $rc >"$T/rc"
        echo ended | tee "$T/taken" >"$T/up"
    } &
    for i in 0 1; do
        read_line_of_job
        case $line in "1 "*) victim=$(echo "$line" | cut -d' ' -f2) ;; esac
    done
    agent=$(ps -o ppid= -p "$victim" | tr -d ' ')
    kill -STOP "$agent"
    echo first >&4
    read -r line <&5
    kill -KILL "$agent"
    read_line_of_job
    [ "$line" = "on 1" ] || fail "$last: $line"
    echo second >&4
    read -r line <&5
    [ "$line" = second ] || fail "$last: rank 0 read $line"
    echo >&7
    wait_for_job
    expect_rc 0
    expect_err "Host b, with 1 rank, was lost"
    expect_gone "$victim"
fi
finish_test
