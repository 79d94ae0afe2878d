#!/bin/sh
# logp.sh BIN: `fishplate-lab logp` measures every verb of the adapter, fits its curves, and predicts the times of barriers. A prediction
# that differs from the simulation by more than 25 % is printed with its reason.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 77 # built without the software adapter

if "$BIN/fishplate-lab" logp --peers 99 2>"$scratch/error"; then
    fail "more peers than there can be were accepted"
fi
expect_line "$scratch/error" "the value of '--peers' is invalid"

"$BIN/fishplate-lab" logp --quick --peers 3 --json --svg "$scratch/plots" >"$scratch/json" 2>"$scratch/progress" || {
    cat "$scratch/progress" "$scratch/json"
    fail "the benchmark failed"
}
expect_json "$scratch/json"
python3 - "$scratch/json" "$scratch/plots" <<'PY'
import json, sys
import xml.etree.ElementTree as tree
answer = json.load(open(sys.argv[1]))
assert answer["failures"] == 0, answer
verbs = {v["verb"]: v for v in answer["verbs"]}
assert set(verbs) == {"send", "send_inline", "write", "write_inline", "read", "atomic", "uc_send", "uc_write_inline", "ud_send",
                      "ud_send_inline"}, verbs.keys()
for verb in verbs.values():
    assert [point["p"] for point in verb["rtt"]] == [1, 2, 3], verb
    assert all(point["us"] > 0 for point in verb["rtt"] + verb["o_s"] + verb["o_s_list"]), verb
    assert verb["rtt_fit"]["residual"] >= 0 and "c" in verb["o_s_fit"], verb
beside = answer["barrier_beside_write"]
assert beside["ratio"] > 0 and beside["barrier_best_us"] <= beside["barrier_us"] and beside["write_best_us"] <= beside["write_us"], beside
assert {row["bytes"] for row in verbs["write"]["logp"]} == {8, 4096}
simulated = [p for p in answer["predictions"] if p["time_is"] == "simulated"]
assert len({p["algorithm"] for p in simulated}) == 11
for p in simulated:
    off = abs(p["logp"] - p["us"]) > 0.25 * p["us"]
    assert off == ("why" in p), p
# Predictions use the parameters of the path that messages take: two ranks use the ring, which is written by RDMA. The printed cause
# agrees with the sign of the error.
measured = [p for p in answer["predictions"] if p["time_is"] == "measured"]
assert measured and all(p["verb"] == "write_inline" for p in measured), measured
assert all(p["why"].startswith(("MPI", "turns")) or p["logp"] > p["us"] for p in measured if "why" in p), measured
# The fitted forms of LogP: linear for the central counter, logarithmic for the others, each with its standard error.
forms = {row[0]: row for row in answer["tables"][0]["rows"]}
assert forms["central, simulated"][3] > 0 and forms["central, simulated"][4] < 5, forms
assert 0 < forms["dissemination, simulated"][4] < 10, forms
assert {f["figure"] for f in answer["figures"]} == {"2.31, 2.33", "2.32, 2.34", "2.36"}, answer["figures"]
for name in ("rtt", "latency", "rtt-others", "overhead", "models", "models-ratio"):
    tree.parse(f"{sys.argv[2]}/{name}.svg")
PY
