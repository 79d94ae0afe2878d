#!/bin/sh
# info.sh: `fishplate info`: the function list agrees with the table, JSON parses, settings are shown with their source.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
info="$BIN/fishplate info"

# Every row of the table that the standard has not removed is listed once, and the totals are those of the list.
grep -v '^#' "$SOURCE/api/functions.tsv" | awk -F '\t' '$5 !~ /removed-/ { print $1 }' | sort >"$scratch/table"
$info --api --json >"$scratch/api.json"
expect_json "$scratch/api.json"
python3 - "$scratch/api.json" "$scratch/table" <<'PY'
import json, sys
api = json.load(open(sys.argv[1]))["api"]
names = sorted(entry["name"] for entry in api["list"])
table = sorted(open(sys.argv[2]).read().split())
assert names == table, f"only in one of them: {set(names) ^ set(table)}"
there = sum(entry["implemented"] for entry in api["list"])
assert api["functions"] == len(names) and api["implemented"] == there and api["missing"] == len(names) - there, api
assert there > 0
PY
total=$(wc -l <"$scratch/table")
missing=$($info --api --missing | grep -c '^MPI_' || true)
$info --api >"$scratch/api.txt"
expect_line "$scratch/api.txt" "^$((total)) functions: $((total - missing)) implemented, $((missing)) missing"

# Every form of JSON parses.
for sections in "" --build --tunables --transports --coll --pvars "--api --missing" "--tunables --pvars --coll"; do
    # shellcheck disable=SC2086
    $info $sections --json >"$scratch/some.json"
    expect_json "$scratch/some.json"
done

$info >"$scratch/all.txt"
expect_line "$scratch/all.txt" '^fishplate [0-9]+\.[0-9]+\.[0-9]+$'
expect_line "$scratch/all.txt" 'standard ABI 1\.0'
expect_line "$scratch/all.txt" '^  shm '
expect_line "$scratch/all.txt" '^  FISHPLATE_LOG = warn   \(default'

FISHPLATE_LOG=error $info --tunables >"$scratch/set.txt"
expect_line "$scratch/set.txt" '^\* FISHPLATE_LOG = error   \(environment'

# The documentation page is the generated one.
$info --tunables --markdown | diff -u "$SOURCE/docs/tunables.md" - ||
    fail "docs/tunables.md is old: make docs writes it"

if $info --nonsense 2>"$scratch/err"; then
    fail "an unknown option was accepted"
fi
expect_line "$scratch/err" "unknown option '--nonsense'"

# Between the ranks of a job: rank 0 prints, once.
"$BIN/mpiexec" -n 3 "$BIN/fishplate" info --protocols --json >"$scratch/protocols.json"
expect_json "$scratch/protocols.json"
"$BIN/mpiexec" -n 3 "$BIN/fishplate" info --protocols >"$scratch/protocols.txt"
expect_line "$scratch/protocols.txt" '^  to rank 1-2 by shm'
expect_line "$scratch/protocols.txt" 'eager'
