#!/bin/sh
# prof.sh BIN [FLAGS]: `fishplate prof` counts exactly what programs do, preloaded and linked, in C and Fortran, and reports it
# as text, JSON and a page that needs nothing else. prof/check.py has the numbers.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
flags=${2:-}
here=$(cd "$(dirname "$0")/prof" && pwd)
lib=$(dirname "$BIN")/lib
# A sanitizer's library must be loaded first; the programs load it after the preloaded library.
[ -z "$flags" ] || export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
cd "$scratch"
export TMPDIR="$scratch/tmp"
mkdir "$TMPDIR"

check_report() {
    python3 "$here/check.py" "$1" "$2" >out || {
        cat out
        fail "the profile of $1"
    }
}

compile_program() {
    "$BIN/mpicc" -Wall -Wextra -g ${flags:+"$flags"} "$here/$1.c" -o "$1"
}

# Every function of the library is intercepted.
nm -D --defined-only "$lib/libmpi_abi.so.1" | awk '$2 == "W" && $3 ~ /^MPI_/ { print $3 }' | sort >functions
nm -D --defined-only "$lib/libfishplate-prof.so" | awk '$3 ~ /^MPI_/ { print $3 }' | sort >intercepted
[ -s functions ] || fail "no functions in libmpi_abi.so.1"
diff functions intercepted || fail "the profiler does not see these"

# C, preloaded: the three forms of the report.
compile_program known
FISHPLATE_SPIN_US=100 "$BIN/fishplate" prof --html known.html --json known.json --record known.txt -- \
    "$BIN/mpiexec" -n 4 ./known >known.out
check_report known_run known.json
expect_line known.out '^Verdict$'
expect_line known.out '^  settings: FISHPLATE_SPIN_US=100$'
check_report html known.html
expect_line known.out '^fishplate prof: .*mpiexec -n 4 ./known, 4 ranks on 1 node$'
expect_line known.out '^  MPI_Isend +40 +[0-9.]+ % '
expect_line known.out '^  point to point +46 +20 +3 +0 +69 +213\.3 KiB +3\.1 KiB$'
expect_line known.out '^  collective +64 +0 +0 +4 +68 '
expect_line known.out '^  MPI_Irecv +40 +1000 B$'
expect_line known.out '^  81\.02 % of 216 accesses; '
expect_line known.out '^  from 1 +5 +\. +11 +1$'
rmdir "$TMPDIR" || fail "records were left behind"
mkdir "$TMPDIR"

# The table of a library of another version is not used.
"$BIN/mpicc" ${flags:+"$flags"} -rdynamic "$here/other_version.c" -o other_version
"$BIN/fishplate" prof -- "$BIN/mpiexec" -n 2 ./other_version >other.out || {
    cat other.out
    fail "the profiler used the table of another version"
}

# A kept record gives the same report.
"$BIN/fishplate" prof --quiet --json again.json --read known.txt >quiet.out
check_report known_run again.json
[ ! -s quiet.out ] || fail "--quiet was not"

# Linked ahead of the library, without the command: the record stays in the working folder.
"$BIN/mpicc" ${flags:+"$flags"} "$here/known.c" -o linked -L"$lib" -lfishplate-prof
"$BIN/mpiexec" -n 4 ./linked 2>linked.err
expect_line linked.err 'fishplate prof --read fishplate-prof-.*\.txt'
"$BIN/fishplate" prof --quiet --json - --read fishplate-prof-*.txt >linked.json
check_report known linked.json
rm fishplate-prof-*.txt

# Sessions only: one record per rank, which are combined.
compile_program session
"$BIN/fishplate" prof --quiet --json session.json "$BIN/mpiexec" -n 3 ./session
check_report session session.json

"$BIN/mpicc" ${flags:+"$flags"} -pthread "$here/threads.c" -o threads
"$BIN/fishplate" prof --quiet --json threads.json -- "$BIN/mpiexec" -n 2 ./threads
check_report threads threads.json

# Fortran, if there is a compiler.
if [ -x "$BIN/mpifort" ]; then
    for way in f08 mpif; do
        "$BIN/mpifort" -g ${flags:+"$flags"} "$here/known_$way.f90" -o "known_$way"
        "$BIN/fishplate" prof --quiet --json "$way.json" -- "$BIN/mpiexec" -n 2 "./known_$way"
        check_report "$way" "$way.json"
    done
fi

# More ranks than processors are the first finding, and the most expensive calls have file and line.
if command -v addr2line >/dev/null; then
    expect_line known.out '^  known\.c:[0-9]+ +MPI_[A-Z][a-z_]+ +[0-9]+ +[0-9.]+ '
    [ ! -e known.html.shown ] || expect_line known.html.shown '<td>known\.c:[0-9]+</td><td>MPI_[A-Z][a-z_]+</td>'
    python3 -c 'import json, sys
lines = json.load(open("known.json"))["lines"]
assert lines and all(a["seconds"] >= b["seconds"] for a, b in zip(lines, lines[1:])), lines' || fail "the lines in JSON"
fi
cat >shared.c <<'C'
#include <mpi.h>
int main(void)
{
    MPI_Init(0, 0);
    for (double end = MPI_Wtime() + 0.1; MPI_Wtime() < end;)
        ;
    for (int i = 0; i < 10000; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
"$BIN/mpicc" -g ${flags:+"$flags"} shared.c -o shared
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//')
taskset -c "$cpu" "$BIN/fishplate" prof -- "$BIN/mpiexec" -n 3 ./shared >shared.out
expect_line shared.out '^  1\. 3 ranks share the 1 processor of .* and take turns'
taskset -c "$cpu" "$BIN/fishplate" prof -- "$BIN/mpiexec" -n 1 ./shared >alone.out
if grep -q 'take turns' alone.out; then fail "one rank shares its processor with nobody"; fi

# `mpiexec fishplate prof` would start a profiler for each rank: an error names the right command.
status=0
"$BIN/mpiexec" -n 2 "$BIN/fishplate" prof ./shared 2>inside.err || status=$?
[ "$status" = 2 ] || fail "the status of a profiler in a job is $status"
expect_line inside.err 'Run: fishplate prof -- mpiexec -n 2 \./shared$'

# After MPI_Abort the report has the available data, and the status is that of the command.
compile_program aborts
status=0
"$BIN/fishplate" prof -- "$BIN/mpiexec" -n 2 ./aborts >aborts.out 2>aborts.err || status=$?
[ "$status" = 5 ] || fail "the status of an aborted job is $status"
expect_line aborts.out '^Incomplete: ' # the other rank may have been ended before MPI_Init was over
expect_line aborts.out '^  MPI_Comm_rank +[12] '

# A crash, a kill, a hang that the launcher ends: the report has the available data and the reason why it is incomplete.
compile_program ends
expect_incomplete_report() { # WAY STATUS [OPTIONS OF MPIEXEC]
    way=$1 wanted=$2 status=0
    shift 2
    "$BIN/fishplate" prof -- "$BIN/mpiexec" -n 3 "$@" ./ends "$way" >"$way.out" 2>"$way.err" || status=$?
    [ "$status" = "$wanted" ] || fail "$way: status $status"
    expect_line "$way.out" '^Incomplete: .* The figures are those until then\.$'
    expect_line "$way.out" '^  MPI_Barrier +[23] '
    [ -z "$(ls "$TMPDIR")" ] || fail "$way: records were left behind"
}
if [ -z "$flags" ]; then # a sanitizer handles these signals itself
    expect_incomplete_report crash 139
    expect_line crash.out '^Incomplete: Rank 1 was ended by signal 11 \(Segmentation fault\), outside MPI\. '
    expect_line crash.out 'Rank [02] was ended by signal 15 \(Terminated\)'
fi
expect_incomplete_report killed 137
expect_line killed.out 'Only 2 of 3 ranks left a record'
expect_incomplete_report hangs 124 -timeout 2
expect_line hangs.out 'Rank 0 was ended by signal 15 \(Terminated\), in MPI_Recv for [0-9.]+ '
