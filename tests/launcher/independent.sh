# Two jobs of different mpiexec commands are connected. A process of one job dies: calls of the other job that wait for it return
# an error, and that job continues; a process that disconnects and ends is no failure.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
export FISHPLATE_NAME_DIR="$T/names"

# serve SERVER-OPTIONS...: starts the server's job in the background and waits until it has published its name.
serve() {
    mkfifo "$T/published"
    exec 4<>"$T/published"
    "$MPIEXEC" -timeout 100 -n 2 "$@" >"$T/published" 2>"$T/server.err" 4>&- &
    server=$!
    read -r line <&4
}

# served: waits for the server; leaves its exit status in rc, its output in $T/out and its errors in $T/err.
served() {
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

client() {
    "$MPIEXEC" -timeout 60 -n 3 "$@" >"$T/client.out" 2>"$T/client.err" || true
}

# deaths CELL CLIENT-OPTIONS...: the first client loses a process, the second one disconnects.
deaths() {
    last="$1"
    shift
    serve $server_options "$INDEPENDENT" serve "$$"
    client "$@" "$INDEPENDENT" die "$$"
    client $server_options "$INDEPENDENT" leave "$$"
    served
    expect_rc 0
    expect_out "rank 0: receive: failed process" "rank 1: receive: failed process" "rank 0: send: failed process" "rank 1: first send: failed process" \
        "rank 1: send: failed process" "rank 0: barrier: failed process" "rank 1: barrier: failed process" \
        "rank 0: 3 messages, disconnect: success" "rank 1: 3 messages, disconnect: success"
}

server_options=
deaths "the whole job of the client ends"
deaths "the client's job goes on" -enable-recovery
server_options=-enable-recovery
deaths "both jobs go on" -enable-recovery
if has_softib; then
    export SOFTIB_FABRIC="nodes=2 name=independent-$$"
    server_options="-vnodes 2"
    deaths "over a network" -vnodes 2
    unset SOFTIB_FABRIC
fi

last="MPI_ERRORS_ARE_FATAL"
serve "$INDEPENDENT" serve "$$" fatal
client "$INDEPENDENT" die "$$"
served
[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
grep -q "has died" "$T/err" || fail "$last: no sentence"
finish
