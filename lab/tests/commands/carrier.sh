#!/bin/sh
# carrier.sh BIN: every report of `fishplate bench`, text and JSON, names the adapter and the carrier of the bytes: memory, softib in
# shared memory, softib over TCP, or several if the ranks of a job are reached over different transports. `fishplate-lab sim` prints
# that its figures are simulated.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"

quick="--time 0.001 --sizes 8"
# report_arguments KIND: the arguments of `fishplate` for a short run with this report.
report_arguments() {
    case $1 in
    bench) echo "bench $quick latency" ;;
    compare) echo "bench $quick --compare bcast" ;;
    kernels) echo "lab kernels is" ;;
    rma) echo "bench rma --seconds 0.0001" ;;
    io) echo "bench io --size 1 --repeat 1 --only contiguous --dir $scratch" ;;
    esac
}

# run_report KIND [--json]: on $ranks ranks, with $options of mpiexec.
run_report() {
    kind=$1
    shift
    # shellcheck disable=SC2046,SC2086
    "$BIN/mpiexec" -n $ranks $options "$BIN/fishplate" $(report_arguments $kind) "$@" >"$scratch/out" || fail "$kind $*, $ranks ranks $options"
}

# expect_text WORDS KIND...: these reports name the transport and adapter in these words.
# expect_carrier CARRIER CARRIERS KIND...: the JSON of these reports has these values.
expect_text() {
    words=$1
    shift
    for kind; do
        run_report "$kind"
        expect_line "$scratch/out" "$words"
    done
}
expect_carrier() {
    carrier=$1 carriers=$2
    shift 2
    for kind; do
        run_report "$kind" --json
        python3 - "$scratch/out" "$carrier" "$carriers" <<'PY' || fail "$kind --json, $ranks ranks $options"
import json, sys
answer = json.load(open(sys.argv[1]))
carrier, carriers = sys.argv[2:4]
assert answer["carrier"] == carrier and answer["carriers"] == carriers.split(","), answer
assert ("softib" in answer["transport"]) == ("softib" in carriers), answer
assert not any("/s/s" in row.get("unit", "") for row in answer.get("results", [])), answer
PY
    done
}

ranks=2 options=
expect_text 'shm .*between ranks 0 and 1' bench
expect_carrier memory memory bench
if [ -e "$BIN/../lib/softib/libibverbs.so.1" ]; then
    export FISHPLATE_VERBS=softib
    named='ib over softib0 port 1, softib'
    options="-vnodes 2"
    expect_text "$named in shared memory \\(software\\) between ranks 0 and 1" bench compare kernels rma io
    expect_carrier softib-memory softib-memory bench compare kernels rma io
    export SOFTIB_FABRIC=wire=tcp
    expect_text "$named over TCP \\(software\\) between ranks 0 and 1" kernels
    expect_carrier softib-tcp softib-tcp kernels
    unset SOFTIB_FABRIC
    # Ranks 0 and 1 share a node: collectives of three use both.
    ranks=3
    expect_text "shm .* between ranks 0 and 1; $named in shared memory \\(software\\) to 1 other rank" kernels
    expect_carrier memory memory,softib-memory kernels
fi

"$BIN/fishplate-lab" sim barrier --nodes 4 >"$scratch/table"
expect_line "$scratch/table" '\(simulated\)'
"$BIN/fishplate-lab" sim barrier --nodes 4 --json >"$scratch/json"
expect_line "$scratch/json" '"carrier": "simulated"'
