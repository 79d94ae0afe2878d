# Jobs of different mpiexec commands are joined in one communicator, and a process of one job dies: calls of the others return an
# error and the jobs continue, whichever of them was started with -enable-recovery.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
export FISHPLATE_NAME_DIR="$T/names"

# start_first_job MPIEXEC-ARGUMENTS...: starts the first job in the background and waits until the job has published a name.
start_first_job() {
    mkfifo "$T/published"
    exec 4<>"$T/published"
    "$MPIEXEC" -timeout 60 -n 2 "$@" >"$T/published" 2>"$T/server.err" 4>&- &
    server=$!
    wait_for_name
}

wait_for_name() {
    : >>"$T/before"
    while read -r line <&4 && [ "$line" != published ]; do
        echo "$line" >>"$T/before"
    done
}

# wait_for_first_job: sets rc to the exit status of the first job; its output is in $T/out, its errors are in $T/err.
wait_for_first_job() {
    rc=0
    wait $server || rc=$?
    echo over >&4
    mv "$T/before" "$T/out"
    while read -r line <&4 && [ "$line" != over ]; do
        echo "$line" >>"$T/out"
    done
    exec 4<&-
    rm "$T/published"
    cp "$T/server.err" "$T/err"
}

print_expected_calls() {
    for r in "$@"; do
        printf '%s\n' "rank $r: receive: failed process" "rank $r: group: failed process" "rank $r: lock: failed process" \
            "rank $r: start: failed process" "rank $r: fence: failed process" "rank $r: free: success" "rank $r: revoked: revoked"
    done
}

# test_two_jobs [OPTION]: starts the first job with this option, and a second one with -enable-recovery, of which a process dies.
test_two_jobs() {
    last="first job: ${1-no option}"
    start_first_job "$@" "$JOINED" first "$$"
    "$MPIEXEC" -timeout 60 -n 3 -enable-recovery "$JOINED" second "$$" >"$T/second.out" 2>"$T/second.err" || true
    wait_for_first_job
    expect_rc 0
    print_expected_calls 0 1 >"$T/calls"
    expect_lines "$T/calls"
    mv "$T/second.out" "$T/out"
    mv "$T/second.err" "$T/err"
    last="second job; $last"
    print_expected_calls 0 2 >"$T/calls"
    expect_lines "$T/calls"
}

expect_lines() {
    sort "$1" >"$T/wanted"
    sort "$T/out" | cmp -s - "$T/wanted" || fail "$last: output differs"
}

test_two_jobs
test_two_jobs -enable-recovery

# The second job has no direct connection to the third one.
last="three jobs"
start_first_job "$JOINED" broker "$$"
"$MPIEXEC" -timeout 60 -n 2 "$JOINED" watcher "$$" >"$T/watcher.out" 2>"$T/watcher.err" &
watcher=$!
wait_for_name
"$MPIEXEC" -timeout 60 -n 2 -enable-recovery "$JOINED" third "$$" >"$T/third.out" 2>"$T/third.err" || true
wait_for_first_job
expect_rc 0
expect_out "rank 0: third: failed process" "rank 1: third: failed process"
last="watcher of three jobs"
rc=0
wait $watcher || rc=$?
mv "$T/watcher.out" "$T/out"
mv "$T/watcher.err" "$T/err"
expect_rc 0
expect_out "rank 0: third: failed process" "rank 1: third: failed process"
finish_test
