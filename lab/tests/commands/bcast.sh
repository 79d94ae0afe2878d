#!/bin/sh
# bcast.sh BIN: `fishplate-lab bcast` prints its help, refuses unknown topics, fills every table, uses multicast in every design
# that has multicast, and delivers every byte.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 77 # built without the software adapter

"$BIN/fishplate-lab" bcast --help >"$scratch/help"
expect_line "$scratch/help" '^  throughput +'
expect_line "$scratch/help" '^  Co-root2 +FISHPLATE_COLL=bcast=multicast:coroots=2'

"$BIN/fishplate-lab" bcast --quick --no-peers --json --svg "$scratch" skew >"$scratch/skew" 2>"$scratch/progress" || {
    cat "$scratch/progress" "$scratch/skew"
    fail "the benchmark failed"
}
# Other libraries are measured too, except under a sanitizer, with which they were not built.
alone=
! "$BIN/fishplate" info | grep -q "with sanitizers" || alone=--no-peers
# shellcheck disable=SC2086
"$BIN/fishplate-lab" bcast --quick $alone --json throughput >"$scratch/json" 2>"$scratch/progress" || {
    cat "$scratch/progress" "$scratch/json"
    fail "the benchmark failed"
}
expect_json "$scratch/json"
python3 - "$scratch/skew" "$scratch/json" $alone <<'PY'
import json, sys
skew, throughput = (json.load(open(name)) for name in sys.argv[1:3])
peers = () if sys.argv[3:] else ("Open MPI", "Open MPI, UCX", "MPICH, UCX")
assert skew["failures"] == 0 and skew["jobs"] == 2 and throughput["failures"] == 0, (skew, throughput)
assert len(skew["tables"]) == 1 and len(throughput["tables"]) == 1, (skew, throughput)
assert skew["tables"][0]["columns"] == ["mean skew, us", "Original", "Window", "Original against Window"], skew
beside = throughput["tables"][0]  # every other library has a column, or a line with the reason why it has none
for peer in peers:
    assert (peer in beside["columns"]) != any(f"{peer} is not measured" in line for line in beside["here"]), (peer, beside)
for table in skew["tables"] + throughput["tables"]:
    assert table["rows"] and table["paper"] and "softib" in table["adapter"], table
    for row in table["rows"]:
        assert len(row) == len(table["columns"]) and "-" not in row, table
    assert any("broadcasts by multicast" in line for line in table["here"]), table
PY
expect_line "$scratch/7.7.svg" 'Window'
if "$BIN/fishplate-lab" bcast nonsense 2>"$scratch/error"; then
    fail "a topic that does not exist was accepted"
fi
expect_line "$scratch/error" "'nonsense' is neither an option nor a topic"
