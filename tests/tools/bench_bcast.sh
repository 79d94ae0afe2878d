#!/bin/sh
# bench_bcast.sh BIN: `fishplate bench bcast` teaches, names mistakes, its tables are full, every design that should multicast
# does, and every byte arrives.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 77 # built without the software adapter

"$BIN/fishplate" bench bcast --help >"$scratch/help"
expect_line "$scratch/help" '^  throughput +'
expect_line "$scratch/help" '^  Co-root2 +FISHPLATE_COLL=bcast=multicast:coroots=2'

"$BIN/fishplate" bench bcast --quick --json --svg "$scratch" skew throughput >"$scratch/json" 2>"$scratch/progress" || {
    cat "$scratch/progress" "$scratch/json"
    fail "the benchmark failed"
}
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["failures"] == 0 and answer["jobs"] == 7, answer
assert len(answer["tables"]) == 2, [t["title"] for t in answer["tables"]]
for table in answer["tables"]:
    assert table["rows"] and table["paper"] and "softib" in table["adapter"], table
    for row in table["rows"]:
        assert len(row) == len(table["columns"]) and "-" not in row, table
    assert any("broadcasts by multicast" in line for line in table["here"]), table
PY
expect_line "$scratch/7.7.svg" 'Window'
if "$BIN/fishplate" bench bcast nonsense 2>"$scratch/error"; then
    fail "a topic that does not exist was accepted"
fi
expect_line "$scratch/error" "'nonsense' is neither an option nor a topic"
