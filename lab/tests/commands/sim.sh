#!/bin/sh
# sim.sh BIN: `fishplate-lab sim`: tables, JSON, equal results of equal runs, parameters, and error messages.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"

"$BIN/fishplate-lab" sim barrier --nodes 16,64 >"$scratch/table"
expect_line "$scratch/table" '^ +64 +nway +[0-9]+\.[0-9]+ .* the rules'
expect_line "$scratch/table" 'million events'
printf 'link_rate 25\nradix 8\n' >"$scratch/machine"
for run in 1 2; do
    "$BIN/fishplate-lab" sim allreduce --nodes 33 --per-node 2 --sizes 8,1M --machine "$scratch/machine" --json >"$scratch/json.$run"
    expect_json "$scratch/json.$run"
done
python3 - "$scratch/json.1" "$scratch/json.2" <<'PY'
import json, sys
one, two = (json.load(open(name)) for name in sys.argv[1:])
assert one["results"] == two["results"], (one, two)
names = {row["algorithm"] for row in one["results"]}
assert {"recursive_doubling", "rabenseifner", "ring"} <= names, names
assert {row["bytes"] for row in one["results"]} == {8, 1 << 20}
assert all(row["us"] > 0 for row in one["results"]), one
PY
# The barrier that switches count, on a single switch of the preset machine: each node sends one message to its switch and receives one.
# The time is that of a send, 2 cables of 100 ns, the switch, its logic, a receive, and the headers.
"$BIN/fishplate-lab" sim barrier --nodes 16 --algorithm switch --json >"$scratch/json"
python3 - "$scratch/json" <<'EOF'
import json, sys
(row,) = json.load(open(sys.argv[1]))["results"]
assert row["algorithm"] == "switch" and row["messages"] == 16 and abs(row["us"] - 0.702) < 0.01, row
EOF
# Rails: `--rails best` gives the fastest of the three uses of two rails, and striping is not always the fastest.
for rails in stripe stages ranks best; do
    "$BIN/fishplate-lab" sim alltoall --nodes 8 --per-node 2 --sizes 8,64k,1M --set rails=2 --rails $rails --json >"$scratch/json.$rails"
done
(cd "$scratch" && python3) <<'EOF'
import json
def times(name):
    return {(r["bytes"], r["algorithm"]): (r["us"], r["rails"]) for r in json.load(open("json." + name))["results"]}
uses = {name: times(name) for name in ("stripe", "stages", "ranks")}
best = times("best")
for row, (us, rails) in best.items():
    assert us == min(u[row][0] for u in uses.values()) == uses[rails][row][0], (row, us, rails)
assert {rails for _, rails in best.values()} - {"stripe"}, best
EOF
# Flow control: with few buffers and a large window the dynamic scheme posts more buffers, and the static scheme does not.
"$BIN/fishplate-lab" sim flow --windows 100 --buffers 10 --messages 2000 --json >"$scratch/json"
python3 - "$scratch/json" <<'EOF'
import json, sys
r = {row["scheme"]: row for row in json.load(open(sys.argv[1]))["results"]}
assert r["dynamic"]["MB/s"] > 1.2 * r["static"]["MB/s"] and r["dynamic"]["most_posted"] > 10 == r["static"]["most_posted"], r
EOF
# A parameter changes the schedule; wrong arguments are refused.
count_messages() {
    "$BIN/fishplate-lab" sim barrier --nodes 27 --algorithm "nway:n=$1" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["results"][0]["messages"])'
}
[ "$(count_messages 1)" = $((27 * 5)) ] || fail "n = 1 is dissemination: 5 rounds of one message"
[ "$(count_messages 2)" = $((27 * 6)) ] || fail "n = 2: 3 rounds of two messages"
expect_refused() {
    words=$1
    shift
    if "$BIN/fishplate-lab" sim "$@" >"$scratch/table" 2>"$scratch/err"; then
        fail "sim $* was accepted"
    fi
    expect_line "$scratch/err" "$words"
}
expect_refused "'alreduce' is not a collective operation" alreduce
expect_refused "'tree' is not an algorithm" barrier --algorithm tree
expect_refused "'--set' is not an option, or its value is invalid" barrier --set link_rate=fast
expect_refused "'--nodes' is out of range" bcast --nodes 4 --root 4
expect_refused "'OPERATION' is missing" --nodes 4
echo 'radix many' >"$scratch/machine"
expect_refused "line 1, 'radix many'" barrier --machine "$scratch/machine"

# The rows of the validation.
"$BIN/fishplate-lab" sim validate >"$scratch/table"
expect_line "$scratch/table" 'M/D/1 queue, load 0.55'
# Broadcast by multicast on a machine from the JSON of `fishplate-lab logp`; the gaps of the larger sizes give a rate of 2 GB/s.
cat >"$scratch/logp" <<'EOF'
{"program": "fishplate-lab logp", "verbs": [{"verb": "write", "logp": []}, {"verb": "send", "logp": [
  {"bytes": 8, "o_s": 0.5, "o_r": 0.25, "g": 0.5, "L": 2}, {"bytes": 4096, "o_s": 1, "o_r": 1, "g": 2.5, "L": 2},
  {"bytes": 32768, "o_s": 1, "o_r": 1, "g": 16.836, "L": 2}]}]}
EOF
"$BIN/fishplate-lab" sim multicast --nodes 16 --packets 20 --collectors 1,4,16 --sizes 8 --machine "$scratch/logp" --svg "$scratch" --json >"$scratch/json"
"$BIN/fishplate-lab" sim multicast --nodes 8 --packets 400 --sizes 8 --json >"$scratch/eight"
"$BIN/fishplate-lab" sim multicast --nodes 256 --packets 300 --sizes 8 --collectors 8,16,32 --json >"$scratch/many"
"$BIN/fishplate-lab" sim multicast --packets 4 --collectors 32 --sizes 8,1836 --json >"$scratch/all"
python3 - "$scratch/json" "$scratch/eight" "$scratch/many" "$scratch/all" <<'EOF'
import json, sys
answers = [json.load(open(name)) for name in sys.argv[1:]]
def figures(answer):
    return {f["figure"]: {l["name"]: [(p["x"], p["y"]) for p in l["points"]] for l in f["lines"]} for f in answer["figures"]}
r, eight, many, all_nodes = map(figures, answers)
assert [x for x, _ in r["7.10"]["simulated"]] == [1, 4, 16], r
multicast = r["7.9"]["multicast"][0][1]
# The time of a send, its copies, two cables of half of L each, the bytes, and a receive.
assert abs(multicast - (0.5 + 0.0008 + 2 + 0.5 + 0.25 + 0.0008)) < 0.01, r
assert r["7.9"]["messages"][0][1] > 3 * multicast, r
# The paper's times with 1024 nodes, to which the machine is fitted; the models compared with the simulator; the best numbers of co-roots.
assert [abs(us - wanted) < 0.1 for (_, us), wanted in zip(all_nodes["7.9"]["multicast"], (20.0, 40.0))] == [True, True], all_nodes
for f in eight, many:
    for name in "messages", "multicast":
        (_, simulated), (_, model) = f["7.9"][name][0], f["7.9"][name + ", model"][0]
        assert abs(model / simulated - 1) < 0.1, (name, f)
    for (k, simulated), (_, model) in zip(f["7.10"]["simulated"], f["7.10"]["model"]):
        assert abs(model / simulated - 1) < 0.2, (k, f)
assert answers[2]["best_collectors"] == 16 and answers[2]["best_collectors_paper"] == 32, answers[2]
EOF
expect_line "$scratch/figure-7.10.svg" "paper's design, model|paper&#39;s design, model|paper&apos;s design, model"

# Rails: a figure as table, JSON and SVG; one run; equal results of equal runs; wrong arguments.
"$BIN/fishplate-lab" sim rails --figures 10,8.16 --length 0.02 --svg "$scratch" >"$scratch/table"
expect_line "$scratch/table" '^ +7 +0\.[0-9]+ '
expect_line "$scratch/table" '^ +1 MiB +[0-9]{4}\.[0-9] +[0-9]{3}\.[0-9] +[0-9]{3}\.[0-9]$'
python3 - "$scratch/figure-10.svg" "$scratch/figure-8.16.svg" <<'PY'
import sys, xml.etree.ElementTree as xml
for name in sys.argv[1:]:
    root = xml.parse(name).getroot()
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) >= 3 and all(len(line.get("points").split()) >= 5 for line in lines), name
PY
for run in 1 2; do
    "$BIN/fishplate-lab" sim rails --run hybrid --nodes 16 --rails 3 --load 0.3 --ratio 0.5 --length 0.3 --json >"$scratch/json.$run"
    expect_json "$scratch/json.$run"
done
cmp "$scratch/json.1" "$scratch/json.2" || fail "two equal runs gave different results"
"$BIN/fishplate-lab" sim rails --figures 8.16 --length 0.05 --json >"$scratch/json"
expect_json "$scratch/json"
expect_refused "'--figures' is not an option, or its value is invalid" rails --figures 17
expect_refused "'--run' is not an option, or its value is invalid" rails --run greedy
expect_refused "'--rails' is not an option, or its value is invalid" rails --run basic --rails 99
expect_refused "cannot write '.*/nowhere/figure-8.16.svg': No such file" rails --figures 8.16 --length 0.05 --svg "$scratch/nowhere"
