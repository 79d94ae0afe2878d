#!/bin/sh
# papers.sh BIN: `fishplate-lab papers` runs, continues after an interruption, compares with an earlier run, and writes a page of valid
# HTML. The test uses simulated entries, which are fast and give the same figures in every run.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
cd "$scratch"
run_papers() {
    "$BIN/fishplate-lab" papers --quick --only hoefler-2,liu-7.1 "$@"
}

"$BIN/fishplate-lab" papers --list >list
expect_line list '^liu-5\.2 +\[Liu04 Figure 5\.2\]'
expect_line list '^coll-10 '
expect_line list '^About [0-9]+ min on an idle machine'

run_papers --html report.html --json report.json >table 2>err || {
    cat table err
    fail "the run failed"
}
expect_line table '^hoefler-2\.21 .* agrees'
expect_line err 'left$'
expect_json report.json
[ ! -e report.html.runs ] || fail "answers stayed behind a whole run"

# Messages that all programs send, counted by the profiler [Liu04 table 9.1]. The tool uses the mpiexec of this build, not one of PATH.
# No time is measured, so the load of the machine does not matter.
if [ -e "$BIN/../lib/softib/libibverbs.so.1" ]; then
    # The profiler is preloaded, so a sanitizer's library is not the first one.
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" FISHPLATE_VERBS=softib "$BIN/fishplate-lab" papers --quick --only liu-t9.1,liu-t9.3,liu-t9.4 --json programs.json >table 2>err || {
        cat table err
        fail "the programs could not be counted"
    }
    python3 - programs.json <<'PY'
import json, sys
tables = {e["id"]: {r["row"]: r["values"] for r in e["rows"]} for e in json.load(open(sys.argv[1]))["entries"]}
sizes, calls, reuse = (tables["liu-t9." + n] for n in "134")
assert set(sizes) == {"IS", "CG", "MG", "LU", "FT", "BT", "SP", "sweep", "vis"}, sizes
assert all(sum(v.values()) > 0 for v in sizes.values()), sizes
# Rank 0 of BT: 61 exchanges of 6 faces + 60 steps of 3 directions, up and down, once each.
assert calls["BT"]["Isend: calls"] == calls["BT"]["Irecv: calls"] == 61 * 6 + 60 * 6, calls
# SP: 100 steps with the same exchange.
assert calls["SP"]["Isend: calls"] == calls["SP"]["Irecv: calls"] == 101 * 6 + 100 * 6, calls
# CG on 2 x 4 ranks: 16 solutions of 26 products (2 sums along the row and the exchange across), 52 sums and 1 sum at the end.
solution = 26 * 3 + 52 * 2 + 2
assert calls["CG"]["Irecv: calls"] == 16 * solution and calls["CG"]["Isend: calls"] == 0, calls
# Each message of a product has a quarter of the 1400 rows.
mean = (26 * 3 * 350 * 8 + 52 * 2 * 8 + 2 * 16) / solution
assert abs(calls["CG"]["Irecv: mean bytes"] - mean) < 0.01, (calls, mean)
# LU: 50 steps of 10 planes, 2 messages down and 2 up; rank 0 has 2 neighbours, with whom it exchanges once a step.
assert sizes["LU"]["< 2 KiB"] >= 50 * 10 * 4 and calls["LU"]["Irecv: calls"] == 50 * 2, (sizes, calls)
# IS: the messages of [Liu04 table 9.1], whatever the class, but that the large ones are smaller here. FT: 6 steps and 2 transforms before.
assert [sizes["IS"][c] for c in ("< 2 KiB", "2 to 16 KiB", "16 KiB to 1 MiB")] == [14, 11, 11], sizes
assert sizes["FT"]["16 KiB to 1 MiB"] == 8, sizes
assert calls["sweep"]["Isend: calls"] == 0 and reuse["BT"]["% reuse"] > 99, (calls, reuse)
PY
fi

# A stored result of an interrupted run is not measured again.
mkdir report.html.runs
printf '%s quick' "$("$BIN/fishplate" version | sed -n 's/^fishplate //p')" >report.html.runs/about
"$BIN/fishplate-lab" sim bcast --nodes 2,4,8 --sizes 8 --json >report.html.runs/bcast_sim.0.0.json
run_papers --html report.html --json again.json >table 2>err
expect_line err 'used 1 results of an earlier'
python3 - report.json again.json <<'PY'
import json, sys
whole, again = (json.load(open(name)) for name in sys.argv[1:])
rows = lambda answer, name: [row["row"] for e in answer["entries"] if e["id"] == name for row in e["rows"]]
assert rows(whole, "liu-7.1") == [2, 4, 8, 16, 64, 256], whole
assert rows(again, "liu-7.1") == [2, 4, 8], again
assert rows(again, "hoefler-2.21") == rows(whole, "hoefler-2.21")
assert all(e["finding"] and e["claim"] and e["commands"] and e["verdict"] for e in whole["entries"])
# An earlier run in which broadcasts took twice as long, and barriers half.
for e in whole["entries"]:
    for row in e["rows"]:
        row["samples"] = {k: [x * (2 if e["id"] == "liu-7.1" else 0.5) for x in v] for k, v in row["samples"].items()}
json.dump(whole, open("old.json", "w"))
PY
run_papers --json - --against report.json >same.json 2>err
run_papers --json - --against old.json >changed.json 2>err
python3 - same.json changed.json <<'PY'
import json, sys
same, changed = ({e["id"]: e for e in json.load(open(name))["entries"]} for name in sys.argv[1:])
assert {e["change"] for e in same.values()} == {"within noise"}, same
assert changed["liu-7.1"]["change"] == "better" and abs(changed["liu-7.1"]["ratio"] - 0.5) < 1e-6, changed
assert changed["hoefler-2.21"]["change"] == "worse", changed
PY
# A command that fails leaves its entry out, with the reason; the other entries and both reports are written, and the status is 1.
mkdir -p half/bin
cp "$BIN/fishplate-lab" half/bin
ln -s "$BIN/../lib" half/lib
printf '#!/bin/sh\necho no such adapter >&2\nexit 3\n' >half/bin/mpiexec
chmod +x half/bin/mpiexec
if half/bin/fishplate-lab papers --quick --only hoefler-2.21,liu-5.1 --html half.html --json half.json >table 2>err; then
    fail "the status is 0 although a command failed"
fi
expect_line table '^hoefler-2\.21 .* agrees'
expect_line err 'failed .exit status 3.: mpiexec -n 2'
grep -q 'its command failed: no such adapter; exit status 3' half.html || fail "the page lacks the reason"
python3 - half.json <<'PY'
import json, sys
half = json.load(open(sys.argv[1]))
assert [e["id"] for e in half["entries"]] == ["hoefler-2.21"], half
assert half["not_measured"] == [{"id": "liu-5.1", "why": "its command failed: no such adapter; exit status 3"}], half
PY
if run_papers --against table >out 2>err; then
    fail "a table was taken for a document"
fi
expect_line err 'is not a report of'
if "$BIN/fishplate-lab" papers --only nothing 2>err; then
    fail "an entry that does not exist was accepted"
fi
expect_line err "no entry begins with 'nothing'"

# The page: elements are closed, links have targets, ids are unique, and nothing is loaded from the network.
python3 - report.html <<'PY'
import html.parser, re, sys
text = open(sys.argv[1]).read()
class Page(html.parser.HTMLParser):
    ids, links, stack, drawings = [], [], [], 0
    void = {"meta", "link", "input", "br"}
    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given: self.ids.append(given["id"])
        if tag == "a": self.links.append(given["href"])
        self.drawings += tag == "svg"
        if tag not in self.void: self.stack.append(tag)
    def handle_startendtag(self, tag, attributes): pass
    def handle_endtag(self, tag): assert self.stack.pop() == tag, (tag, self.getpos())
page = Page()
page.feed(text)
assert not page.stack, page.stack
assert len(set(page.ids)) == len(page.ids) and page.drawings >= 3, page.ids
assert page.links and all(link[0] == "#" and link[1:] in page.ids for link in page.links), page.links
assert not re.search(r"(src|href)=\"(https?:)?//", text)
PY
