#!/bin/sh
# ib.sh BIN: `fishplate-lab ib` runs every topic over virtual nodes, every table is full, and its JSON parses.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 77 # built without the software adapter

"$BIN/fishplate-lab" ib --help >"$scratch/help"
expect_line "$scratch/help" '^  rendezvous +'
if "$BIN/fishplate-lab" ib nonsense 2>"$scratch/error"; then
    fail "a topic that does not exist was accepted"
fi
expect_line "$scratch/error" "'nonsense' is neither an option nor a topic"

"$BIN/fishplate-lab" ib --quick --json >"$scratch/json" 2>"$scratch/progress" || {
    cat "$scratch/progress" "$scratch/json"
    fail "the benchmark failed"
}
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["failures"] == 0 and answer["jobs"] > 10, answer
assert len(answer["tables"]) == 20, [t["title"] for t in answer["tables"]]
for table in answer["tables"]:
    assert table["rows"] and table["paper"], table
    assert table["adapter"] == "softib0 port 1, softib in shared memory (software)", table  # never shown as hardware
    cache = table["title"].startswith("Registrations")  # eager messages need no registrations: "-"
    for row in table["rows"]:
        assert len(row) == len(table["columns"]), table
        assert cache or "-" not in row, table  # "-": a missing figure
    title = table["title"]
    if title.startswith("Credit"):
        pipeline = [row for row in table["rows"] if row[0] == "pipeline" and row[1] == "static"]
        assert pipeline and pipeline[0][4] > 0, table  # one-sided traffic needs explicit credit messages
    if title.startswith("Time to poll"):
        assert [row[0] for row in table["rows"]] == [1, 2], table  # one ring per connection
PY

# PUTNR's worst case: the last byte of the message equals the constant that marks an empty buffer, so the receiver cannot see its arrival
# and nearly every message needs a second message. PUT's random mark avoids nearly all of these messages [Takagi13 fig. 7].
python3 - "$scratch/json" <<'PY'
import json, re, sys
tables = [t for t in json.load(open(sys.argv[1]))["tables"] if t["title"].startswith("BOWTIE, 1 pair, the last byte")]
notes = dict(re.match(r"(.*): one more message for (\d+ of \d+)", h).groups() for h in tables[0]["here"] if "one more message" in h)
share = {name: int(text.split()[0]) / int(text.split()[2]) for name, text in notes.items()}
assert share["putnr, same byte"] > 0.9 and share["put, same byte"] < 0.1 and share["putnr, changed"] < 0.1, notes
PY
