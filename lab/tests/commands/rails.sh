#!/bin/sh
# rails.sh BIN: `fishplate-lab rails` prints its help, refuses unknown topics, fills its tables of one and two rails, stripes over both
# rails, and delivers every byte.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 77 # built without the software adapter

"$BIN/fishplate-lab" rails --help >"$scratch/help"
expect_line "$scratch/help" '^  unequal +'

rc=0
"$BIN/fishplate-lab" rails --quick --json pairs >"$scratch/json" 2>"$scratch/progress" || rc=$?
if [ $rc = 3 ]; then # the library uses one rail: one line reports it, and no row is printed
    expect_line "$scratch/progress" 'this library uses one rail'
    [ ! -s "$scratch/json" ] || fail "rows of one rail: $(cat "$scratch/json")"
    exit 0
fi
[ $rc = 0 ] || {
    cat "$scratch/progress" "$scratch/json"
    fail "the benchmark failed"
}
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["failures"] == 0 and answer["jobs"] == 2, answer
assert len(answer["tables"]) == 4, [t["title"] for t in answer["tables"]]
for table in answer["tables"]:
    assert table["rows"] and table["paper"] and "softib" in table["adapter"], table
    for row in table["rows"]:
        assert len(row) == len(table["columns"]) and "-" not in row, table
    assert any("went over the second rail" in line for line in table["here"]), table
PY
"$BIN/fishplate-lab" rails --quick --json whole alloc >"$scratch/policies" 2>"$scratch/progress" || {
    cat "$scratch/progress"
    fail "the policies failed"
}
python3 - "$scratch/policies" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["failures"] == 0 and len(answer["tables"]) == 2, answer
whole, alloc = answer["tables"]
assert all("-" not in row for t in (whole, alloc) for row in t["rows"]), answer
assert all(float(row[-1]) >= 4 for row in alloc["rows"]), alloc  # control frames of a message: RTS, CTS, DONE, ACK
PY
"$BIN/fishplate-lab" rails --quick --json stages >"$scratch/stages" 2>"$scratch/progress" || {
    cat "$scratch/progress"
    fail "collectives with a rail for each stage failed"
}
python3 - "$scratch/stages" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["failures"] == 0 and answer["jobs"] == 6 and len(answer["tables"]) == 4, answer
assert all("-" not in row for t in answer["tables"] for row in t["rows"]), answer
PY
if "$BIN/fishplate-lab" rails nonsense 2>"$scratch/error"; then
    fail "a topic that does not exist was accepted"
fi
expect_line "$scratch/error" "'nonsense' is neither an option nor a topic"
