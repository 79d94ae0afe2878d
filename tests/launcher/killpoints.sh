# A rank is killed between the steps of spawn, accept and connect: every job ends and leaves no processes or files.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
kill_lib=$(dirname "$(dirname "$MPIEXEC")")/lib/kill
[ -e "$kill_lib/libmpi_abi.so.1" ] || skip "the library with kill points was not built"
cp "$SPAWNER" "$T/spawner"
export LD_LIBRARY_PATH="$kill_lib" FISHPLATE_NAME_DIR="$T/names"

expect_no_spawner() {
    for pid in $(pgrep -f "^$T/spawner" || true); do
        expect_gone "$pid"
    done
}

# A parent, a child, or one of each is killed.
cells=0
for point in spawn_port_open spawn_requested spawn_accepted port_caller_proved port_connector_proved meet_verdict_sent \
    meet_cards_learned meet_settled; do
    FISHPLATE_KILL_AT=$point:1:0 run_mpiexec -timeout 60 -n 2 "$T/spawner" hello
    last="kill point $point, $last"
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
    expect_no_spawner
    cells=$((cells + 1))
done

# The server or its client is killed. If the client dies before the server has accepted it, the server waits for the next client.
for who in serve ask; do
    for point in port_caller_proved port_connector_proved meet_verdict_sent meet_cards_learned meet_settled; do
        last="kill point $point of $who"
        mkfifo "$T/said"
        exec 4<>"$T/said"
        at=
        [ $who != serve ] || at=$point:1:0
        FISHPLATE_KILL_AT=$at timeout 100 "$MPIEXEC" -timeout 80 -n 2 "$T/spawner" serve kill-$point >"$T/said" 2>"$T/err" 4>&- &
        pid=$!
        read -r line <&4
        at=
        [ $who != ask ] || at=$point:1:0
        FISHPLATE_KILL_AT=$at run_mpiexec -timeout 60 -n 1 "$T/spawner" ask kill-$point
        [ "$rc" -ne 124 ] || fail "$last: the client did not end"
        if kill -0 $pid 2>/dev/null; then
            FISHPLATE_KILL_AT='' run_mpiexec -timeout 60 -n 1 "$T/spawner" ask kill-$point
        fi
        rc=0
        wait $pid || rc=$?
        [ "$rc" -ne 124 ] || fail "$last: the server did not end"
        exec 4<&-
        rm "$T/said"
        expect_no_spawner
        cells=$((cells + 1))
    done
done
echo "$cells cells"
finish_test
