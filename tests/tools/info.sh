#!/bin/sh
# info.sh: `fishplate info`: the function list agrees with the table, JSON parses, settings are shown with their source.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
info="$BIN/fishplate info"

# Every function of the table that the standard has not removed is listed once, and the totals agree with the list.
grep -v '^#' "$SOURCE/api/functions.tsv" | awk -F '\t' '$5 !~ /removed-/ { print $1 }' | sort >"$scratch/table"
$info --api --json >"$scratch/api.json"
expect_json "$scratch/api.json"
python3 - "$scratch/api.json" "$scratch/table" <<'PY'
import json, sys
api = json.load(open(sys.argv[1]))["api"]
names = sorted(entry["name"] for entry in api["list"])
table = sorted(open(sys.argv[2]).read().split())
assert names == table, f"only in one of them: {set(names) ^ set(table)}"
assert api["functions"] == len(names) > 0, api
PY
total=$(wc -l <"$scratch/table")
$info --api >"$scratch/api.txt"
expect_line "$scratch/api.txt" "^$((total)) functions: all of MPI 5.0"
if $info --api --missing 2>"$scratch/alone.txt"; then fail "--missing without a file gives status 0"; fi
expect_line "$scratch/alone.txt" "goes with --api and files"

# `info --hints` lists the hints that docs/io.md explains.
$info --hints >"$scratch/hints.txt"
expect_line "$scratch/hints.txt" "^romio_cb_write = automatic, enable, disable"
$info --hints --json >"$scratch/hints.json"
expect_json "$scratch/hints.json"

# The MPI library that a file needs: objects and libraries, damaged files, other files.
cat >"$scratch/needs.c" <<'C'
#include <mpi.h>
int MPI_Type_struct(int), MPIX_Query_rocm_support(int);
int main(void) { MPI_Init(0, 0); MPIX_Query_rocm_support(0); return MPI_Type_struct(1); }
C
"$BIN/mpicc" -c "$scratch/needs.c" -o "$scratch/needs.o"
$info --api /bin/sh >"$scratch/needs.txt"
expect_line "$scratch/needs.txt" '^/bin/sh calls no MPI function by name'
"$BIN/mpicc" -shared -fPIC "$scratch/needs.c" -o "$scratch/needs"
for file in needs.o needs; do
    if $info --api "$scratch/$file" >"$scratch/needs.txt"; then fail "a file that needs missing functions gives status 0"; fi
    expect_line "$scratch/needs.txt" "$file needs 3 MPI functions; 2 of them"
    $info --api --missing "$scratch/$file" >"$scratch/names.txt" || true
    sort "$scratch/names.txt" | tr '\n' ' ' | grep -qx 'MPIX_Query_rocm_support MPI_Type_struct ' || fail "the names of what is missing"
    $info --api --json "$scratch/$file" >"$scratch/needs.json" || true
    expect_json "$scratch/needs.json"
done
size=$(wc -c <"$scratch/needs")
for cut in 0 10 64 100 1000 $((size / 2)) $((size - 1)); do
    head -c "$cut" "$scratch/needs" >"$scratch/cut"
    if $info --api "$scratch/cut" >"$scratch/cut.txt" 2>&1; then fail "a file cut to $cut bytes gives status 0"; fi
    expect_line "$scratch/cut.txt" "cannot read the symbols"
done
# A program that was linked with another MPI library is reported, since its handles differ.
"${CC:-cc}" -shared -fPIC -Wl,-soname,libmpi.so.40 -x c /dev/null -o "$scratch/libother.so"
"$BIN/mpicc" -shared -fPIC "$scratch/needs.c" -Wl,--no-as-needed "$scratch/libother.so" -o "$scratch/foreign"
if $info --api "$scratch/foreign" >"$scratch/foreign.txt"; then fail "a program of another MPI gives status 0"; fi
expect_line "$scratch/foreign.txt" "compiled for another MPI library \(libmpi.so.40\)"
if $info --tunables "$scratch/needs" 2>"$scratch/files.txt"; then fail "a file without --api gives status 0"; fi
expect_line "$scratch/files.txt" "files go with --api alone"

# Every form of JSON parses.
for sections in "" --build --tunables --transports --coll --pvars --api "--tunables --pvars --coll"; do
    # shellcheck disable=SC2086
    $info $sections --json >"$scratch/some.json"
    expect_json "$scratch/some.json"
done

$info >"$scratch/all.txt"
expect_line "$scratch/all.txt" '^fishplate [0-9]+\.[0-9]+\.[0-9]+$'
expect_line "$scratch/all.txt" 'standard ABI 1\.0'
$info --coll >"$scratch/coll.txt"
expect_line "$scratch/coll.txt" 'enable-recovery every collective is made of messages'
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
expect_line "$scratch/err" "'--nonsense' is neither an option nor a file"

# In a job only rank 0 prints.
"$BIN/mpiexec" -n 3 "$BIN/fishplate" info --protocols --json >"$scratch/protocols.json"
expect_json "$scratch/protocols.json"
"$BIN/mpiexec" -n 3 "$BIN/fishplate" info --protocols >"$scratch/protocols.txt"
expect_line "$scratch/protocols.txt" '^  to rank 1-2 by shm'
expect_line "$scratch/protocols.txt" 'eager'
expect_line "$scratch/protocols.txt" '^  collectives: by flags in shared memory'
"$BIN/mpiexec" -enable-recovery -n 2 "$BIN/fishplate" info --protocols >"$scratch/protocols.txt"
expect_line "$scratch/protocols.txt" '^  collectives: made of the messages above'

# The effective value of a setting and its source.
expect_line "$scratch/protocols.txt" '^    up to [0-9]+ bytes  eager \(sent at once\); the limit is '
# The tuner's results of a short run, and no results without the tuner.
"$BIN/mpiexec" -n 2 "$BIN/fishplate" info --tuned >"$scratch/tuned.txt"
expect_line "$scratch/tuned.txt" 'shared memory, 64 KiB, isolated: .* us by cost'
expect_line "$scratch/tuned.txt" 'shared memory, 256 KiB, bursts: .* us by cost'
FISHPLATE_TUNE=off "$BIN/mpiexec" -n 2 "$BIN/fishplate" info --tuned >"$scratch/tuned.txt"
expect_line "$scratch/tuned.txt" 'nothing was measured'
FISHPLATE_EAGER_MAX=4k "$BIN/mpiexec" -n 2 "$BIN/fishplate" info --protocols >"$scratch/protocols.txt"
expect_line "$scratch/protocols.txt" '^    up to 4096 bytes  eager \(sent at once\); the limit is FISHPLATE_EAGER_MAX$'
if [ -e "$BIN/../lib/softib/libibverbs.so.1" ]; then
    FISHPLATE_VERBS=softib "$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" info --protocols >"$scratch/protocols.txt"
    expect_line "$scratch/protocols.txt" 'to rank 1 by ib over softib0 port 1, softib in shared memory \(software\): frames'
    expect_line "$scratch/protocols.txt" 'the limit is what the transport does best; FISHPLATE_EAGER_MAX is not set$'
    # On softib the processor copies, so the receiver makes no offers, and the page must not list them.
    expect_line "$scratch/protocols.txt" '^    above [0-9]+ bytes  .*measured'
    ! grep -q 'several rails' "$scratch/protocols.txt" || fail "one rail: $(cat "$scratch/protocols.txt")"
    FISHPLATE_VERBS=softib FISHPLATE_LAB=IB_STRIPE_MIN=64k "$BIN/mpiexec" -n 2 -vnodes 2 -hcas 2 "$BIN/fishplate" info --protocols \
        >"$scratch/rails.txt"
    expect_line "$scratch/rails.txt" 'large messages of at least 131072 bytes are divided among all'
    ! grep -q 'offered' "$scratch/protocols.txt" || fail "offers are promised on softib: $(cat "$scratch/protocols.txt")"
    # In a job on several nodes: the algorithms that were measured to be fastest, and their times.
    FISHPLATE_COLL_TRY=100 "$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" info --coll >"$scratch/tried.txt"
    expect_line "$scratch/tried.txt" "2 ranks on 2 nodes: .* us; tried rule:"
    expect_line "$scratch/tried.txt" "allreduce of 1024 bytes, 2 ranks on 2 nodes: "
    expect_line "$scratch/tried.txt" "alltoall of 65536 bytes, 2 ranks on 2 nodes: "
    # A multicast needs three nodes.
    ! grep -qE ' multicast [0-9]' "$scratch/tried.txt" || fail "multicast between two nodes: $(cat "$scratch/tried.txt")"
    FISHPLATE_COLL_TRY=100 "$BIN/mpiexec" -n 3 -vnodes 3 "$BIN/fishplate" info --coll >"$scratch/tried.txt"
    tr -s ' \n' '  ' <"$scratch/tried.txt" >"$scratch/joined.txt"
    expect_line "$scratch/joined.txt" "bcast of 1024 bytes, 3 ranks on 3 nodes: [^;]* us; tried rule:[^;]* multicast [0-9.]+"
    FISHPLATE_COLL_TRY=0 "$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" info --coll --json >"$scratch/tried.json"
    expect_json "$scratch/tried.json"
    grep -q '"chosen"' "$scratch/tried.json" || fail "JSON does not say what was chosen"
fi
