#!/bin/sh
# rails.sh: large messages use every port of both ends, with several adapters, ports and paths, in every protocol, also if the
# ends differ; and a port that goes down loses no data.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
rails=$IB_TESTS/ib_rails

# Every kind of rail, and the protocols of large messages.
for hcas in 2x1GB/s 1GB/s,250MB/s,ports=2; do
    run_job 4 2 FISHPLATE_STATS=1 -hcas "$hcas" "$rails" joined
    expect_rc 0
    expect_counted ib_striped
    expect_counted ib_rail1_bytes
done
# By default frames above a length use all rails, unless each process is bound to one rail.
run_job 2 2 FISHPLATE_STATS=1 -hcas 2x1GB/s "$BIN/fishplate" bench --sizes 8k,64k --time 0.01 bw
expect_rc 0
expect_counted ib_frames_spread
expect_counted ib_striped
run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_MESSAGES=binding,IB_STRIPE_MIN=32k -hcas 2x1GB/s "$BIN/fishplate" bench --sizes 8k,64k --time 0.01 bw
expect_rc 0
[ "$(print_counter ib_frames_spread)" = 0 ] || fail "frames left the rail of the process with FISHPLATE_LAB=IB_MESSAGES=binding"
if ! has_ethernet_ports; then # ports in the Ethernet have no LIDs, and therefore one path
    run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_IB_PATHS=2 -hcas 1GB/s,lmc=1 "$rails" joined
    expect_rc 0
    expect_counted ib_rail1_bytes
fi
for way in get put putnr rput; do
    run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_RENDEZVOUS=$way -hcas 2x1GB/s "$rails" joined
    expect_rc 0
    expect_counted ib_rail1_bytes
done
run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_IB_STRIPE=weighted FISHPLATE_IB_WEIGHTS=3,1 FISHPLATE_IB_RECEIVE=shared \
    -hcas 2x1GB/s "$rails" joined
expect_rc 0
expect_counted ib_rail1_bytes
[ "$(print_counter ib_rail0_bytes)" -gt $((2 * $(print_counter ib_rail1_bytes))) ] || fail "weights of 3 and 1 are not kept"
run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_IB_STRIPE=off -hcas 2 "$rails"
expect_rc 0
[ "$(print_counter ib_striped)" = 0 ] || fail "messages were striped with FISHPLATE_IB_STRIPE=off"

# Each message uses one rail, chosen by a policy; or a message uses allocated rails, which both ends reserve by requests and grants.
for way in turns shares window room stages basic local dynamic hybrid; do
    run_job 4 4 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_STRIPE=$way -hcas 2x400MB/s "$rails" joined joined joined joined joined joined joined
    expect_rc 0
    expect_counted ib_rail0_bytes
    expect_counted ib_rail1_bytes
    case $way in
    dynamic | hybrid)
        expect_counted ib_reserve_granted
        [ "$(print_counter ib_reserve_frames)" -ge $((4 * $(print_counter ib_reserve_granted))) ] ||
            fail "$way: a reservation takes four messages: RTS, CTS, DONE, ACK"
        ;;
    local) expect_counted ib_rail_receive_waits ;;
    turns | stages | basic) [ "$(print_counter ib_striped)" = 0 ] || fail "$way: messages were divided" ;;
    esac
done
# Ranks of a node share the reservations of its ports: a port is busy for both while one of them uses it.
for way in basic local dynamic hybrid; do
    run_job 4 2 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_STRIPE=$way -hcas 2x400MB/s "$rails" joined joined joined
    expect_rc 0
    expect_counted ib_rail0_bytes
    expect_counted ib_rail1_bytes
    case $way in dynamic | hybrid) expect_counted ib_reserve_granted ;; esac
done
# Static allocation of two rails connects two processes; of four processes it is refused with a reason.
run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_STRIPE=static -hcas 2x400MB/s "$rails" joined
expect_rc 0
[ "$(print_counter ib_striped)" = 0 ] || fail "static: messages were divided, though there is one rail in each direction"
run_job 4 4 FISHPLATE_LAB=IB_STRIPE=static -hcas 2x400MB/s "$rails" joined joined joined joined joined joined joined
expect_rc 0
expect_err "connects at most 2 processes"
# The striping ratio.
run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_STRIPE=local,IB_STRIPE_RATIO=0 -hcas 2x400MB/s "$rails" joined
expect_rc 0
[ "$(print_counter ib_striped)" = 0 ] || fail "messages were divided with a striping ratio of 0"
# A transfer that has requested rails uses the primary rail if the others go down, and must return rails granted later. This
# case occurs only in some runs; with a sanitizer there are fewer runs.
turns="1 2 3"
[ -n "$SANITIZED" ] || turns="$turns 4 5 6 7 8 9 10 11 12"
for turn in $turns; do
    run_job 2 2 FISHPLATE_LAB=IB_STRIPE=dynamic -hcas 2x400MB/s "$rails" node1/hca1/1
    expect_rc 0
done

# Small messages over all rails, by every policy; with shared receive queues, and without rings.
for way in turns shares window room; do
    run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_MESSAGES=$way -hcas 2x1GB/s "$rails" joined
    expect_rc 0
    expect_counted ib_rail0_frames
    expect_counted ib_rail1_frames
done
run_job 4 2 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_MESSAGES=turns,IB_FLOW=static FISHPLATE_IB_RECEIVE=shared FISHPLATE_IB_POLLSET=0 \
    FISHPLATE_IB_BUFFERS=2 -hcas 2x1GB/s "$rails" joined
expect_rc 0
expect_counted ib_frames_spread
run_job 4 2 FISHPLATE_LAB=IB_MESSAGES=turns FISHPLATE_IB_MAX_CONNECTIONS=1 -hcas 2x1GB/s "$rails" joined
expect_rc 0
# The rail of the small messages fails: lost messages are sent again.
run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_LAB=IB_MESSAGES=turns -hcas 2x400MB/s "$rails" node1/hca1/1
expect_rc 0
expect_counted ib_frames_spread

# Frames that arrived before the port went down are delivered, although they were not polled yet.
for way in turns auto; do
    run_job 2 2 "FISHPLATE_VERBS=$POOR" POOR_POLL=1 FISHPLATE_LAB=IB_SIGNAL_EVERY=1,IB_MESSAGES=$way FISHPLATE_IB_POLLSET=0 \
        -hcas 2x1GB/s "$rails" joined unseen node1/hca1/1
    expect_rc 0
done
# The same, with the report about the peer's port received before the own port is checked.
run_job 2 2 "FISHPLATE_VERBS=$POOR" POOR_POLL=1 FISHPLATE_LAB=IB_SIGNAL_EVERY=1,IB_MESSAGES=turns FISHPLATE_IB_POLLSET=0 \
    -hcas 3x1GB/s "$rails" joined notified node0/hca2/1 node1/hca1/1
expect_rc 0

# One end has one port, the other two; and two ends whose second ports have no path between them.
run_job 2 2 FISHPLATE_STATS=1 "SOFTIB_FABRIC=hcas=2 rate=1GB/s node1/hca1/1: down=0s" "$rails" joined
expect_rc 0
expect_counted ib_striped
run_job 2 2 FISHPLATE_LOG=info FISHPLATE_VERBS="$POOR" POOR_RAILS=1 POOR_HIDE=0:softib1 \
    "SOFTIB_FABRIC=nodes=2 hcas=2 name=fp-rails-apart-$$" "$rails"
expect_rc 0
expect_err "the two hosts have no other ports on a common network"

# Ports go down and come up during the transfers, on either side; one port stays down.
for ports in "node1/hca1/1" "dead node0/hca1/1"; do
    # shellcheck disable=SC2086
    run_job 2 2 FISHPLATE_STATS=1 -hcas 2x400MB/s "$rails" $ports
    expect_rc 0
    expect_err "softib1 port 1 went down; messages go over the other rails"
    expect_counted ib_rail_failures
done
run_job 4 4 FISHPLATE_RENDEZVOUS=put -hcas 3x400MB/s "$rails" node2/hca1/1 node0/hca2/1
expect_rc 0

# The primary port goes down: connections move to the other port of the adapter and return.
run_job 2 2 -hcas 400MB/s,ports=2 "$rails" moved node1/hca0/1
expect_rc 0
expect_err "softib0 port 1 went down; messages go over the other rails"
run_job 4 4 FISHPLATE_IB_RECEIVE=shared -hcas 2x400MB/s,ports=2 "$rails" dead moved node2/hca0/1
expect_rc 0

# If the adapter has no other port, or is removed, connections move to another adapter.
run_job 2 2 FISHPLATE_STATS=1 -hcas 2x400MB/s "$rails" moved node1/hca0/1
expect_rc 0
expect_err "the connection to rank 0 over softib0 port 1 failed: the port went down; it is opened again"
expect_counted ib_connections_moved
run_job 4 4 FISHPLATE_IB_RECEIVE=shared -hcas 2x400MB/s "$rails" remove moved node2/hca0
expect_rc 0
# A connection is closed and one end is not notified: it is opened again when that end sends.
run_job 3 3 FISHPLATE_STATS=1 FISHPLATE_IB_MAX_CONNECTIONS=1 FISHPLATE_IB_TIMEOUT=8 FISHPLATE_IB_RETRIES=1 -hcas 1 "$rails" closed node1/hca0/1
expect_rc 0
expect_counted ib_connections_moved
# Flags of a barrier that may have to be written again, in memory that has been released. On a busy machine their arrival may be
# known before the port goes down.
for turn in 1 2 3 4 5; do
    run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_COLL=barrier=rdma -hcas 2x400MB/s "$rails" freed node1/hca0/1
    expect_rc 0
    [ "$(print_counter ib_transfers_resent)" = 0 ] || break
done
expect_counted ib_transfers_resent
# All ports of a node go down: the job waits for the configured time, and ends with an error message.
for way in binding auto turns; do
    run_job 2 2 FISHPLATE_LAB=IB_MESSAGES=$way FISHPLATE_IB_RAIL_PATIENCE=1 -hcas 2x400MB/s "$rails" dead moved node1/hca0/1 node1/hca1/1
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
    expect_err " 1 seconds"
done

# A port that is down at the start, of another or of the same adapter, at both ends or at one, becomes a rail when it comes up.
for late in "hcas=2 rate=1GB/s node0/hca1/1: down=0s node1/hca1/1: down=0s" "ports=2 rate=1GB/s node0/hca0/2: down=0s node1/hca0/2: down=0s"; do
    case $late in hcas*) port=hca1/1 ;; *) port=hca0/2 ;; esac
    run_job 2 2 FISHPLATE_STATS=1 FISHPLATE_IB_DEVICES=softib0,softib1 "SOFTIB_FABRIC=$late" \
        "$rails" late node0/$port late node1/$port
    expect_rc 0
    expect_err "has come up; messages use it too"
    expect_counted ib_rail1_bytes
done

# Invalid settings of users.
# XRC uses one rail and reports it.
run_job 2 2 FISHPLATE_IB_RECEIVE=xrc FISHPLATE_IB_PATHS=2 -hcas 2x1GB/s,ports=2,lmc=1 "$rails"
expect_rc 0
expect_err "FISHPLATE_IB_RECEIVE=xrc uses one port in each process: rank 0 uses softib0 port 1 and leaves 3 other ports unused"
expect_err "FISHPLATE_IB_PATHS=2 has no effect"
run_job 2 2 FISHPLATE_IB_RECEIVE=xrc "$rails"
expect_rc 0
expect_no_text "FISHPLATE_IB_RECEIVE=xrc"
run_job 2 2 FISHPLATE_IB_WEIGHTS=4,x -hcas 2 "$rails"
[ "$rc" -ne 0 ] || fail "a weight that is no number was taken"
expect_err "FISHPLATE_IB_WEIGHTS=4,x is not a list of positive numbers"
run_job 2 2 FISHPLATE_IB_WEIGHTS=4,1,1 -hcas 2 "$rails"
[ "$rc" -ne 0 ] || fail "a weight too many was taken"
expect_err "more weights than there are rails (2)"
run_job 2 2 FISHPLATE_IB_DEVICES=softib0,softib7:2 -hcas 2 "$rails"
expect_rc 0
expect_err "FISHPLATE_IB_DEVICES names softib7:2, which is not there"
finish_test
