# Other hosts, simulated by a remote shell that stays on this machine: everything that works locally works through agents.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_local_shell
run_on_two_hosts() {
    run_mpiexec -launcher-exec "$T/shell" -hosts a:2,b:2 -n 4 "$@"
}

run_on_two_hosts "$CLIENT" exchange
expect_rc 0
expect_out "exchange ok" "exchange ok" "exchange ok" "exchange ok"
run_mpiexec -launcher-exec "$T/shell" -hosts a:2,localhost:2 -n 4 "$CLIENT" exchange
expect_rc 0
run_on_two_hosts -l sh -c 'echo $PMI_RANK on $FISHPLATE_HOST'
expect_out "[0] 0 on a" "[1] 1 on a" "[2] 2 on b" "[3] 3 on b"
run_on_two_hosts head -c 2000000 /dev/zero
[ "$(wc -c <"$T/out")" -eq 8000000 ] || fail "$last: output was lost"
# count_slowly: reads in small pieces and prints the number of bytes. With a slow reader mpiexec sends pause and continue messages to
# the agents. An agent that ends before it reads such a message must not lose output that mpiexec has not read.
count_slowly() {
    total=0
    while n=$(head -c 65536 | wc -c) && [ "$n" -gt 0 ]; do
        total=$((total + n))
    done
    echo $total
}
for i in 1 2 3; do
    total=$("$MPIEXEC" -launcher-exec "$T/shell" -hosts a:2,b:2 -n 4 head -c 2000000 /dev/zero 2>"$T/err" | count_slowly)
    [ "$total" -eq 8000000 ] || fail "a slow reader received $total of 8000000 bytes"
done
run_on_two_hosts -genv A 'two  words' -wdir / sh -c 'echo "$A" $(pwd)'
expect_out "two  words /" "two  words /" "two  words /" "two  words /"

run_on_two_hosts "$CLIENT" crash 2
expect_rc 139
expect_err "Rank 2 on host b"
run_on_two_hosts "$CLIENT" abort 3 7 "it is enough"
expect_rc 7
expect_err "Rank 3 on host b"
run_on_two_hosts no-such-program
expect_rc 127
expect_err "could not be started on host"
run_on_two_hosts "$CLIENT" late 1 5
expect_rc 5
run_on_two_hosts -timeout 1 sleep 1000
expect_rc 124
expect_err "ranks 0-1 on host a; ranks 2-3 on host b"

# A host that cannot be reached, a missing command, an agent without its secret.
run_mpiexec -launcher-exec false -hosts a,localhost -n 2 sleep 1000
expect_rc 1
expect_err "Host a, with 1 rank, was lost"
run_mpiexec -launcher-exec "$T/nowhere" -hosts a,localhost -n 2 sleep 1000
expect_rc 1
expect_err "$T/nowhere"
"$MPIEXEC" --fishplate-agent 127.0.0.1 1 0 </dev/null >"$T/out" 2>"$T/err" && fail "an agent ran without a secret"

# The death of an agent ends its ranks and the job.
cat >"$T/agent-kill" <<'END'
#!/bin/sh
# The rank's parent is the agent's worker.
[ $PMI_RANK != 1 ] || kill -KILL $PPID
exec sleep 1000
END
chmod +x "$T/agent-kill"
run_mpiexec -launcher-exec "$T/shell" -hosts a,b -n 2 "$T/agent-kill"
expect_rc 1
expect_err "Host b, with 1 rank, was lost"
# -iface: mpiexec listens at that address only. The remote shell runs before any agent has connected, so the socket is open.
cat >"$T/door" <<'END'
#!/bin/sh
for fd in /proc/$PPID/fd/*; do
    inode=$(readlink "$fd" | sed -n 's/^socket:\[\([0-9]*\)\]$/\1/p')
    [ -z "$inode" ] || awk -v i="$inode" '$4 == "0A" && $10 == i { print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
done >>"$LISTENING"
shift
exec "$@"
END
chmod +x "$T/door"
export LISTENING="$T/listening"
for network in lo 127.0.0.0/8; do
    : >"$LISTENING"
    run_mpiexec -iface $network -launcher-exec "$T/door" -hosts a,b,c -n 3 "$CLIENT" exchange
    expect_rc 0
    [ -s "$LISTENING" ] && ! grep -qv '^0100007F:' "$LISTENING" || fail "$last: listens at $(cat "$LISTENING")"
done
# By default mpiexec listens on the loopback interface if all hosts are this machine; for hosts that the name service does not know, and
# with "any", it listens on all addresses.
: >"$LISTENING"
run_mpiexec -launcher-exec "$T/door" -hosts 127.0.0.2,127.0.0.3 -n 2 "$CLIENT" exchange
expect_rc 0
grep -qv '^0100007F:' "$LISTENING" && fail "$last: listens at $(cat "$LISTENING")"
for network in "" "-iface any"; do
    : >"$LISTENING"
    run_mpiexec $network -launcher-exec "$T/door" -hosts a.invalid,b.invalid -n 2 "$CLIENT" exchange
    expect_rc 0
    grep -Eq '^(0{8}|0{32}):' "$LISTENING" || fail "$last: listens at $(cat "$LISTENING")"
done
run_mpiexec -iface lo -fanout 1 -launcher-exec "$T/shell" -hosts a,b,c -n 3 "$CLIENT" exchange
expect_rc 0
for network in nosuch0 240.0.0.0/24 127.0.0.0/33 127.0.0.0/8x /8; do
    run_mpiexec -iface $network -launcher-exec "$T/shell" -hosts a,b -n 2 true
    expect_rc 1
    expect_err "no address of the network $network"
done
finish_test
