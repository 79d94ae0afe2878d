#!/bin/sh
# sim_memory.sh BIN: `fishplate-lab sim memory` computes exactly the bytes that the library registers on 4 virtual nodes, for each scheme;
# and its order of the schemes by memory at 100,000 ranks.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"

if [ -e "$BIN/../lib/softib/libibverbs.so.1" ]; then
    # Static flow control: with dynamic flow control the library would post more buffers for a late rank.
    export FISHPLATE_VERBS=softib FISHPLATE_LAB=IB_FLOW=static
    # measure_bytes STAGE SETTINGS...: rank 0's registered bytes after stage 0 (MPI_Init) or 2 (every rank has exchanged messages with all
    # others).
    measure_bytes() {
        stage=$1
        shift
        env "$@" "$BIN/mpiexec" -n 4 -vnodes 4 "$BIN/fishplate-lab" ib rank memory >"$scratch/figures"
        sed -n "s/^figure c buffers\.$stage //p" "$scratch/figures"
    }
    compute_bytes() {
        "$BIN/fishplate-lab" sim memory --ranks 4 --partners 3 --json |
            python3 -c 'import json, sys; print(*[int(r["frames"]) for r in json.load(sys.stdin)["results"] if r["scheme"] == sys.argv[1]])' "$1"
    }
    expect_equal_bytes() {
        if [ "$2" != "$3" ]; then fail "$1: computed $2, the library registered $3 bytes"; fi
    }
    expect_equal_bytes static "$(compute_bytes static)" "$(measure_bytes 0 FISHPLATE_IB_CONNECT=static FISHPLATE_IB_POLLSET=0)"
    expect_equal_bytes "on demand" "$(compute_bytes "on demand")" "$(measure_bytes 2 FISHPLATE_IB_CONNECT=on-demand FISHPLATE_IB_POLLSET=0)"
    expect_equal_bytes "shared queues" "$(compute_bytes "shared queues")" \
        "$(measure_bytes 2 FISHPLATE_IB_CONNECT=on-demand FISHPLATE_IB_POLLSET=0 FISHPLATE_IB_RECEIVE=shared)"
fi
"$BIN/fishplate-lab" sim memory --json >"$scratch/json"
FISHPLATE_IB_BUFFERS=2 "$BIN/fishplate-lab" sim memory --json >"$scratch/less"
python3 - "$scratch/json" "$scratch/less" <<'PY'
import json, sys
usual, less = ({(r["ranks"], r["scheme"]): r for r in json.load(open(name))["results"]} for name in sys.argv[1:])
big = 100000
assert usual[big, "static"]["frames"] == usual[big, "on demand"]["frames_all"] > 30 << 30, usual[big, "static"]
assert usual[big, "shared queues"]["frames_all"] < 25 << 20, usual[big, "shared queues"]
assert usual[big, "rings for all"]["frames_all"] > usual[big, "and rings"]["frames_all"], usual
assert less[big, "static"]["frames"] < 0.6 * usual[big, "static"]["frames"], less[big, "static"]
PY
"$BIN/fishplate-lab" sim memory >"$scratch/table"
expect_line "$scratch/table" '^ +100000  shared queues '
"$BIN/fishplate-lab" sim memory --ranks 1 2>"$scratch/err" && fail "one rank was accepted"
expect_line "$scratch/err" 'out of range'
