#!/bin/sh
# barrier.sh BIN: `fishplate-lab barrier` measures every barrier on jobs of its own; every schedule sends as many
# messages as its generator defines; JSON and HTML parse.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 77 # built without the software adapter

"$BIN/fishplate-lab" barrier --help >"$scratch/help"
expect_line "$scratch/help" '^  --budget'
if "$BIN/fishplate-lab" barrier --shapes 2x4 2>"$scratch/error"; then
    fail "more nodes than ranks were accepted"
fi
expect_line "$scratch/error" "the value of '--shapes' is invalid"

"$BIN/fishplate-lab" barrier --quick --shapes 5x5,4x2 --json --html "$scratch/page.html" >"$scratch/json" 2>"$scratch/progress" || {
    cat "$scratch/progress" "$scratch/json"
    fail "the benchmark failed"
}
expect_line "$scratch/progress" '5 ranks on 5 nodes, 1 of 2 shapes'
expect_json "$scratch/json"
python3 - "$scratch/json" "$scratch/page.html" <<'PY'
import json, sys
import xml.etree.ElementTree as tree
answer = json.load(open(sys.argv[1]))
assert answer["failures"] == 0 and len(answer["shapes"]) == 2 and answer["regret"] > 0, answer
names = {"central", "combining:n=4", "tournament", "fway:f=4", "mcs:n=4:release=2", "bst", "butterfly", "pairwise",
         "dissemination", "nway:n=3", "nwise:n=2", "rdma:n=1", "switch", "auto"}
each = answer["shapes"][0]
assert each["ranks"] == 5 and names <= {b["setting"] for b in each["barriers"]}, each
for barrier in each["barriers"]:
    assert barrier["us"] > 0 and barrier["bytes"] > 0, barrier
    if "messages_of_schedule" in barrier:
        # A message that a rank sends late in one barrier may be counted with the next barrier, so the means differ slightly.
        assert abs(barrier["operations"] - barrier["messages_of_schedule"]) < 1, barrier
assert [f["figure"] for f in answer["figures"]] == ["4", "2.38 left", "2.38 right", "2.39 left", "2.39 right"]
page = tree.parse(sys.argv[2]).getroot()
assert len(page.findall(".//{http://www.w3.org/2000/svg}svg")) >= 6
PY
