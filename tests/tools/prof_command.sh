#!/bin/sh
# prof_command.sh BIN [FLAGS]: how `fishplate prof` runs a command: status, environment, several jobs, errors; and reports of jobs
# larger than this machine could run, from simulated records.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
flags=${2:-}
here=$(cd "$(dirname "$0")/prof" && pwd)
[ -z "$flags" ] || export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
cd "$scratch"

check_report() {
    python3 "$here/check.py" "$1" "$2" >out || {
        cat out
        fail "the report on $1"
    }
}

# expect_status STATUS COMMAND...
expect_status() {
    wanted=$1 found=0
    shift
    "$@" >out 2>err || found=$?
    [ "$found" = "$wanted" ] || {
        cat out err
        fail "$*: status $found instead of $wanted"
    }
}

"$BIN/fishplate" prof --help >help
expect_line help 'fishplate prof -- mpiexec -n 4'
expect_line help 'MPI_Pcontrol'
expect_status 2 "$BIN/fishplate" prof
expect_line err 'no command was given'
expect_status 2 "$BIN/fishplate" prof --nonsense -- true
expect_line err "'--nonsense' is not an option"
expect_status 2 "$BIN/fishplate" prof --html
# A report that cannot be written is an error before the command runs.
for option in --html --json --timeline; do
    expect_status 1 "$BIN/fishplate" prof $option "$scratch/none/report" -- touch ran
    expect_line err 'cannot write .*none/report: No such file or directory'
    [ ! -e ran ] || fail "$option: the command ran"
done
expect_status 1 "$BIN/fishplate" prof --read nowhere.txt
expect_line err 'nowhere.txt cannot be read'
echo 'record 1
job 1
rank 0 2
nonsense' >bad.txt
expect_status 1 "$BIN/fishplate" prof --read bad.txt
expect_line err 'line 4 of bad.txt'

# A record with impossible sizes is refused before memory is allocated for it.
{
    printf 'record 1\njob claims\nrank 0 1048576\nhost here\nprogram claims\ntime 1 1 0\n'
    i=0
    while [ $i -lt 100 ]; do
        echo "call MPI_Claim$i p2p 0 1 10 10 1 10"
        i=$((i + 1))
    done
    echo end
} >claims.txt
expect_status 1 "$BIN/fishplate" prof --read claims.txt
expect_line err 'line 71 of claims.txt .* more functions than a job calls'

# A job on two nodes, with known sums.
cat >nodes.txt <<'END'
record 1
job a
rank 0 3
host north
program made-up
time 1000000000 100000000 0
call MPI_Send p2p 0 20 100000000 50000000 20 200
p2p 11 1 1000
peer 1 20 200
outside 0 0
reuse 10 5 100 90 0
end
record 1
job a
rank 1 3
host north
program made-up
time 1000000000 500000000 0
call MPI_Send p2p 0 23 500000000 50000000 23 809
p2p 12 1 1
p2p 14 1 1
p2p 15 1 1
p2p 20 2 1
p2p 21 4 1
peer 0 10 100
peer 2 10 700
outside 3 9
reuse 10 5 100 90 0
end
record 1
job a
rank 2 3
host south
program made-up
time 1000000000 0 0
outside 0 0
reuse 0 0 0 0 0
end
END
"$BIN/fishplate" prof --json nodes.json --read nodes.txt >nodes.out
check_report nodes nodes.json
expect_line nodes.out '3 ranks on 2 nodes$'
expect_line nodes.out 'within a node: 75\.0 % of the messages, 30\.0 % of the bytes'
expect_line nodes.out '3 messages went to processes outside'

# Verdicts from simulated times of 20 calls of MPI_Allreduce, in groups of two or four calls: rank 2 is always last; the ranks are
# last in turn; no rank waits.
python3 - <<'PY'
def record(name, times, width=2):
    with open(name, "w") as f:
        for rank in range(4):
            t = times(rank)
            w = 2 * width if rank == 3 else width
            grouped = [sum(t[i:i + w // width]) for i in range(0, len(t), w // width)]
            total = sum(t)
            f.write(f"record 1\njob v\nrank {rank} 4\nhost n\nprogram p\ndate 1000000000\nlibrary Made Up 1.0\n"
                    f"time 1000000000 {total} 0\ncall MPI_Allreduce coll 0 20 {total} {max(t)} 20 160\n"
                    f"waits MPI_Allreduce 20 {w} {len(grouped)} {' '.join(map(str, grouped))}\n"
                    "outside 0 0\nreuse 0 0 0 0 0\nend\n")
record("late.txt", lambda rank: [20_000_000 if rank == 2 else 70_000_000] * 10)
record("turns.txt", lambda rank: [2_000_000 if group // 2 % 4 == rank else 52_000_000 for group in range(10)])
record("fine.txt", lambda rank: [1_000_000] * 10)
PY
for way in late turns fine; do
    "$BIN/fishplate" prof --json $way.json --html $way.html --read $way.txt >$way.out
    check_report $way $way.json
done
expect_line late.out '^  1\. Rank 2 is late: 3 ranks wait 500\.00 ms for it in MPI_Allreduce\.'
expect_line late.out '^  MPI_Allreduce +80 +375\.00 ms +200\.00 ms +2 \(100 %\)$'
expect_line late.out '2001-09-09 01:46 UTC; Made Up 1\.0$'
if command -v node >/dev/null; then
    node "$here/../render_page.js" late.html >late.shown
    node "$here/../render_page.js" fine.html >fine.shown
    expect_line late.shown 'section class="verdict costly"'
    expect_line fine.shown 'section class="verdict fine"'
fi

# Many ranks: pairs instead of a table, and a page that stays small.
python3 - >many.txt <<'PY'
for rank in range(500):
    print(f"record 1\njob b\nrank {rank} 500\nhost n{rank // 8}\nprogram <many & \"more\">\ntime 1000000000 500000000 0")
    print("call MPI_Send p2p 0 2 500000000 400000000 2 20\np2p 5 2 20\nreuse 2 1 20 10 7")
    for peer in (rank + 1) % 500, (rank + 499) % 500:
        print(f"peer {peer} 1 10")
    print("outside 0 0\nend")
PY
"$BIN/fishplate" prof --html many.html --read many.txt >many.out
check_report html many.html
cells=$(sed -n 's/ cells//p' out)
[ "$cells" -ge 64 ] && [ "$cells" -le 4096 ] || fail "$cells cells in the chart of 500 ranks"
expect_line many.out '1000 pairs of ranks, 2\.0 peers a rank'
expect_line many.out '3500 addresses found no room'
[ "$(wc -l <many.out)" -lt 60 ] || fail "a report of 500 ranks has $(wc -l <many.out) lines"

# The command's status and environment. Programs without the sanitizer, such as the shell, cannot load its library.
[ -z "$flags" ] || exit 0
expect_status 3 "$BIN/fishplate" prof -- sh -c 'exit 3'
expect_status 143 "$BIN/fishplate" prof -- sh -c 'kill -TERM $$'
expect_status 127 "$BIN/fishplate" prof -- "$scratch/nothing"
expect_status 1 "$BIN/fishplate" prof -- true
expect_line err 'no record was left'

"$BIN/mpicc" "$SOURCE/examples/ring.c" -o ring
LD_BIND_NOW=1 "$BIN/fishplate" prof --quiet --html two.html --json two.json -- \
    sh -c '"$0" -n 2 ./ring && "$0" -n 3 ./ring' "$BIN/mpiexec" >out
for file in two.html two-2.html two.json two-2.json; do
    [ -s "$file" ] || fail "no $file after two jobs"
done

# A timeline of every call, and one without room for all calls.
"$BIN/fishplate" prof --quiet --timeline line.json --json report.json -- "$BIN/mpiexec" -n 3 ./ring >out 2>err
expect_line err 'the time line is in line.json: .*ui.perfetto.dev'
python3 "$here/timeline.py" line.json report.json >out || {
    cat out
    fail "the time line"
}
FISHPLATE_PROF_TIMELINE=2 "$BIN/fishplate" prof --quiet --timeline short.json -- "$BIN/mpiexec" -n 3 ./ring >out 2>err
expect_line err 'later calls are not in it'

# Libraries that were preloaded before remain preloaded.
echo '#include <stdlib.h>
__attribute__((constructor)) static void here(void) { setenv("WAS_PRELOADED", "yes", 1); }' >other.c
"${CC:-cc}" -shared -fPIC other.c -o other.so
LD_PRELOAD="$scratch/other.so" "$BIN/fishplate" prof -- sh -c 'echo "preloaded: $WAS_PRELOADED"; "$0" -n 2 ./ring' \
    "$BIN/mpiexec" >out
expect_line out '^preloaded: yes$'
expect_line out '^fishplate prof: .*, 2 ranks on 1 node$'

# Another user may have made the folder of the records on a machine where `fishplate prof` does not run: no link in it is followed.
mkdir foreign
chmod 777 foreign
echo precious >precious
FISHPLATE_PROF=$scratch/foreign LD_PRELOAD=$BIN/../lib/libfishplate-prof.so \
    sh -c 'for name in cut-0-$$ fishplate-prof-$$-$$ fishplate-prof-$$-rank0; do
               ln -s ../precious foreign/$name.txt
           done; exec ./ring' >out 2>err || {
    cat out err
    fail "a program with a foreign folder for its record"
}
[ "$(cat precious)" = precious ] || fail "a file was overwritten through a link in a foreign folder"
rm -rf foreign fishplate-prof-*.txt

# A library whose path cannot be written in LD_PRELOAD.
mkdir 'a b'
cp -P "$(dirname "$BIN")"/lib/lib*.so* 'a b/'
LD_LIBRARY_PATH="$scratch/a b" "$BIN/fishplate" prof -- "$BIN/mpiexec" -n 2 ./ring >out
expect_line out '^fishplate prof: .*, 2 ranks on 1 node$'
