# Two jobs of different mpiexec commands are connected. A process of one job dies: calls of the other job that wait for it return
# an error, and that job continues; a process that disconnects and ends is no failure.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
export FISHPLATE_NAME_DIR="$T/names"

# start_server SERVER-OPTIONS...: starts the server's job in the background and waits until it has published its name.
start_server() {
    mkfifo "$T/published"
    exec 4<>"$T/published"
    "$MPIEXEC" -timeout 100 -n 2 "$@" >"$T/published" 2>"$T/server.err" 4>&- &
    server=$!
    read -r line <&4
}

# wait_for_server: sets rc to the exit status of the server; its output is in $T/out, its errors are in $T/err.
wait_for_server() {
    rc=0
    wait $server || rc=$?
    echo over >&4
    : >"$T/out"
    while read -r line <&4 && [ "$line" != over ]; do
        echo "$line" >>"$T/out"
    done
    exec 4<&-
    rm "$T/published"
    cp "$T/server.err" "$T/err"
}

run_client() {
    "$MPIEXEC" -timeout 60 -n 3 "$@" >"$T/client.out" 2>"$T/client.err" || true
}

# test_death_and_disconnect NAME CLIENT-OPTIONS...: a process of the first client dies, the second client disconnects.
test_death_and_disconnect() {
    last="$1"
    shift
    start_server $server_options "$INDEPENDENT" serve "$$"
    run_client "$@" "$INDEPENDENT" die "$$"
    run_client $server_options "$INDEPENDENT" leave "$$"
    wait_for_server
    expect_rc 0
    expect_out "rank 0: receive: failed process" "rank 1: receive: failed process" "rank 0: send: failed process" "rank 1: first send: failed process" \
        "rank 1: send: failed process" "rank 0: barrier: failed process" "rank 1: barrier: failed process" \
        "rank 0: 3 messages, disconnect: success" "rank 1: 3 messages, disconnect: success"
}

server_options=
test_death_and_disconnect "the whole job of the client ends"
test_death_and_disconnect "the client's job goes on" -enable-recovery
server_options=-enable-recovery
test_death_and_disconnect "both jobs go on" -enable-recovery
if has_softib; then
    export SOFTIB_FABRIC="nodes=2 name=independent-$$"
    server_options="-vnodes 2"
    test_death_and_disconnect "over a network" -vnodes 2
    unset SOFTIB_FABRIC
fi

last="MPI_ERRORS_ARE_FATAL"
start_server "$INDEPENDENT" serve "$$" fatal
run_client "$INDEPENDENT" die "$$"
wait_for_server
[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
grep -q "has died" "$T/err" || fail "$last: no sentence"
finish_test
