# The placement of ranks: hosts, slots, host files, -ppn, -map-by, virtual nodes; and the placement as ranks see it.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_local_shell
show='echo $PMI_RANK $FISHPLATE_HOST $FISHPLATE_LOCAL_RANK/$FISHPLATE_LOCAL_SIZE'
run_show() {
    run_mpiexec -launcher-exec "$T/shell" "$@" sh -c "$show"
    expect_rc 0
}

run_show -hosts a,b:2 -n 3
expect_out "0 a 0/1" "1 b 0/2" "2 b 1/2"
run_show -hosts a,b:2
expect_out "0 a 0/1" "1 b 0/2" "2 b 1/2"
run_show -hosts a,b -ppn 2 -n 4
expect_out "0 a 0/2" "1 a 1/2" "2 b 0/2" "3 b 1/2"
run_show -hosts a:2,b:2 -map-by node -n 4
expect_out "0 a 0/2" "1 b 0/2" "2 a 1/2" "3 b 1/2"
run_show -hosts a,b -n 4 # more ranks than slots: the hosts are used again
expect_out "0 a 0/2" "1 b 0/2" "2 a 1/2" "3 b 1/2"
printf '# hosts\nc slots=2\n\nd:1   # one\nc\n' >"$T/hosts"
for name in -f -hostfile --hostfile -machinefile; do
    run_show $name "$T/hosts"
    expect_out "0 c 0/3" "1 c 1/3" "2 c 2/3" "3 d 0/1"
done
printf 'c slots=many\n' >"$T/hosts"
run_mpiexec -f "$T/hosts" true
expect_rc 2
expect_err "line 1 of"
run_mpiexec -f "$T/nowhere" true
expect_rc 2
run_mpiexec -hosts=-oProxyCommand=true true
expect_rc 2
expect_err "not a host name"

# Rank files: host and processors of each rank; the hosts come from the file unless a host list is given.
printf '# two\nrank 1=c slot=0\nrank 0=d slot=*\n\nrank 2 = d slots = 0:0\nrank 3=c\n' >"$T/ranks"
run_show -rankfile "$T/ranks"
expect_out "0 d 0/2" "1 c 0/2" "2 d 1/2" "3 c 1/2"
run_show --rankfile "$T/ranks" -n 2 -hosts c,d,e
expect_out "0 d 0/1" "1 c 0/1"
printf 'rank 0=+n1 slot=0\nrank 1=+n0 slot=0\n' >"$T/relative"
run_show -rf "$T/relative" -hosts c,d
expect_out "0 d 0/1" "1 c 0/1"
# Several names of this machine are one host; the rank file refers to the list as it was given.
printf 'rank 0=+n2\nrank 1=+n1\nrank 2=127.0.0.1\nrank 3=d\n' >"$T/aliases"
run_show -rf "$T/aliases" -hosts localhost,127.0.0.1,c,d
expect_out "0 c 0/1" "1 localhost 0/2" "2 localhost 1/2" "3 d 0/1"
printf 'rank 0=localhost\nrank 1=127.0.0.1\n' >"$T/aliases"
run_show -rf "$T/aliases"
expect_out "0 localhost 0/2" "1 localhost 1/2"
expect_bad_rankfile() { # text of the file, message, options...
    printf '%b' "$1" >"$T/ranks"
    want=$2
    shift 2
    run_mpiexec "$@" -rankfile "$T/ranks" true
    expect_rc 2
    expect_err "$want"
}
expect_bad_rankfile 'rank 0=c slot=0\nrank=c slot=1\n' "Line 2 of the rank file"
expect_bad_rankfile 'rank 0=c slot=0 1\n' "Line 1 of the rank file"
expect_bad_rankfile 'rank 0=c slot\n' "slot=LIST"
expect_bad_rankfile 'rank 0=c slot=0\nrank 0=d slot=0\n' "the rank has a line already"
expect_bad_rankfile 'rank 1=c slot=0\n' "has no line for rank 0"
expect_bad_rankfile '# nobody\n' "names no rank"
expect_bad_rankfile 'rank 0=c slot=0\n' "is not one of the job's 1 host" -hosts d
expect_bad_rankfile 'rank 0=c slot=0\n' "places 1 rank, and the job has 2" -n 2
expect_bad_rankfile 'rank 0=+n0 slot=0\n' "give -hosts or -hostfile"
expect_bad_rankfile 'rank 0=c slot=0\n' "-rankfile places every rank" -map-by node
expect_bad_rankfile 'rank 0=localhost slot=0-9999\n' "core 9999 is requested"
expect_bad_rankfile 'rank 0=localhost slot=99:0\n' "socket 99 is requested"
expect_bad_rankfile 'rank 0=localhost slot=0,x\n' "is no list of cores"
expect_bad_rankfile 'rank 0=localhost slot=0;1\n' "should follow a comma"

# Jobs of other batch systems: PBS and LSF repeat a host for each slot, Grid Engine counts them. -hosts comes first.
printf 'a\na\nb\n' >"$T/slots"
printf 'c 2 all.q@c UNDEFINED\nd 1 all.q@d UNDEFINED\n' >"$T/counts"
(
    export PBS_JOBID=1.server PBS_NODEFILE="$T/slots"
    run_show
    expect_out "0 a 0/2" "1 a 1/2" "2 b 0/1"
    run_show -hosts d -n 1
    expect_out "0 d 0/1"
    PBS_NODEFILE=$T/nowhere
    run_mpiexec true
    expect_rc 2
    expect_err "The hosts of this PBS job cannot be read"
    exit $failures
) || failures=$((failures + 1))
(
    export LSB_JOBID=1 LSB_DJOB_HOSTFILE="$T/slots"
    run_show
    expect_out "0 a 0/2" "1 a 1/2" "2 b 0/1"
    exit $failures
) || failures=$((failures + 1))
(
    export JOB_ID=1 PE_HOSTFILE="$T/counts"
    run_show
    expect_out "0 c 0/2" "1 c 1/2" "2 d 0/1"
    PE_HOSTFILE=$T/slots
    run_mpiexec true
    expect_rc 2
    expect_err "the number of slots of host"
    exit $failures
) || failures=$((failures + 1))

show='echo $PMI_RANK $FISHPLATE_VNODE $FISHPLATE_LOCAL_RANK/$FISHPLATE_LOCAL_SIZE $MPI_LOCALRANKID/$MPI_LOCALNRANKS'
run_mpiexec -n 5 -vnodes 2 sh -c "$show"
expect_out "0 0 0/3 0/3" "1 0 1/3 1/3" "2 0 2/3 2/3" "3 1 0/2 0/2" "4 1 1/2 1/2"
run_mpiexec -n 4 -vnodes 2 -map-by node sh -c "$show"
expect_out "0 0 0/2 0/2" "1 1 0/2 0/2" "2 0 1/2 1/2" "3 1 1/2 1/2"
run_mpiexec -n 2 sh -c 'echo ${FISHPLATE_VNODE-none} $FISHPLATE_WORLD_RANK/$FISHPLATE_WORLD_SIZE $FISHPLATE_NODE_MAP'
expect_out "none 0/2 (vector,(0,1,2))" "none 1/2 (vector,(0,1,2))"

# The library gets the same placement, and only the ranks of a node share its segment.
run_mpiexec -n 4 -vnodes 2 "$CLIENT" place
host=$(hostname)
expect_out "rank 0 of 4 node 0 of 2 local 0 of 2 vnode 0 appnum 0 host $host-v0 launcher mpiexec" \
    "rank 1 of 4 node 0 of 2 local 1 of 2 vnode 0 appnum 0 host $host-v0 launcher mpiexec" \
    "rank 2 of 4 node 1 of 2 local 0 of 2 vnode 1 appnum 0 host $host-v1 launcher mpiexec" \
    "rank 3 of 4 node 1 of 2 local 1 of 2 vnode 1 appnum 0 host $host-v1 launcher mpiexec"
run_mpiexec -n 6 -vnodes 3 "$CLIENT" segment
expect_rc 0
run_mpiexec -n 4 "$CLIENT" segment
expect_rc 0
run_mpiexec -launcher-exec "$T/shell" -hosts a:2,b:2,localhost:2 "$CLIENT" segment
expect_rc 0

# More ranks than the user's slots: one line reports it, unless oversubscription was requested.
printf 'localhost slots=1\n' >"$T/few"
run_mpiexec -f "$T/few" -n 3 true
expect_rc 0
expect_err "Note: 3 ranks share the 1 slot of host localhost"
[ "$(wc -l <"$T/err")" -eq 1 ] || fail "$last: one line was expected"
run_mpiexec -f "$T/few" -n 3 --oversubscribe true
[ ! -s "$T/err" ] || fail "$last: -oversubscribe turns the note off"
run_mpiexec -hosts localhost -n 3 true
expect_no_err

# More ranks than cores: the line appears in a log, since run_mpiexec writes to a file.
run_on_one_core() {
    run_launcher taskset -c "$(taskset -pc $$ | sed 's/.*[:,-] *//')" "$MPIEXEC" "$@"
    expect_rc 0
}
if command -v taskset >/dev/null; then
    run_on_one_core -n 2 true
    expect_err "Note: 2 ranks share the 1 core of host"
    [ "$(wc -l <"$T/err")" -eq 1 ] || fail "$last: one line was expected"
    run_on_one_core -n 2 -oversubscribe true
    [ ! -s "$T/err" ] || fail "$last: -oversubscribe turns the note off"
    run_on_one_core -n 1 true
    [ ! -s "$T/err" ] || fail "$last: one rank has its core alone"
fi

# An mpiexec that a rank starts runs a separate job.
run_mpiexec -n 1 -vnodes 1 "$MPIEXEC" -n 2 sh -c 'echo $PMI_SIZE ${FISHPLATE_VNODE-none}'
expect_out "2 none" "2 none"

# Virtual nodes are the nodes of a software fabric, unless the user describes one.
unset SOFTIB_FABRIC SOFTIB_NODE
run_mpiexec -n 3 -vnodes 3 sh -c 'echo $SOFTIB_NODE ${SOFTIB_FABRIC%name=*}'
expect_out "0 nodes=3" "1 nodes=3" "2 nodes=3"
run_mpiexec -n 2 -vnodes 2 -genv SOFTIB_FABRIC "ports=2" sh -c 'echo $SOFTIB_NODE ${SOFTIB_FABRIC#*name=}'
job=$(sed 's/.* \(fp.*\) ports=2/\1/;q' "$T/out")
expect_out "0 $job ports=2" "1 $job ports=2"
run_mpiexec -n 2 -vnodes 2 -genv SOFTIB_FABRIC "nodes=4 ports=2" -genv SOFTIB_NODE 3 sh -c 'echo $SOFTIB_NODE $SOFTIB_FABRIC'
expect_out "3 nodes=4 ports=2" "3 nodes=4 ports=2"
run_mpiexec -n 1 -vnodes 1 "$MPIEXEC" -n 2 -vnodes 2 sh -c 'echo $SOFTIB_NODE ${SOFTIB_FABRIC%name=*}'
expect_out "0 nodes=2" "1 nodes=2"
run_mpiexec -n 2 sh -c 'echo $SOFTIB_NODE-$SOFTIB_FABRIC'
expect_out "-" "-"

# -hcas: the adapters of each virtual node.
expect_hcas() { # list, words of the fabric
    run_mpiexec -n 1 -vnodes 1 -hcas "$1" sh -c 'echo ${SOFTIB_FABRIC#* name=* }'
    expect_out "$2"
}
expect_hcas 2 "hcas=2 ports=1 lmc=0"
expect_hcas 2x1GB/s,ports=2,lmc=1 "hcas=2 ports=2 lmc=1 rate=1GB/s"
expect_hcas 1GB/s,250MB/s,latency=2us "hcas=2 ports=1 lmc=0 latency=2us hca0: rate=1GB/s hca1: rate=250MB/s"
expect_hcas 1,10Gbit/s "hcas=2 ports=1 lmc=0 hca1: rate=10Gbit/s"
expect_hcas 1,bus=1GB/s "hcas=1 ports=1 lmc=0 bus=1GB/s"
expect_hcas 1,pin=200ns "hcas=1 ports=1 lmc=0 pin=200ns"
expect_hcas lmc=2 "hcas=1 ports=1 lmc=2"
run_mpiexec -n 2 -vnodes 2 --hca=2 -genv SOFTIB_FABRIC "latency=3us node1: rate=2GB/s" sh -c 'echo ${SOFTIB_FABRIC#* name=* }'
expect_out "hcas=2 ports=1 lmc=0 latency=3us node1: rate=2GB/s" "hcas=2 ports=1 lmc=0 latency=3us node1: rate=2GB/s"
run_mpiexec -n 1 -vnodes 1 -genvnone -hcas 3 "$(command -v sh)" -c 'echo ${SOFTIB_FABRIC#* name=* }'
expect_out "hcas=3 ports=1 lmc=0"
# mpiexec passes the path of the software HCA of its own tree.
mkdir -p "$T/bin" "$T/lib/softib"
cp "$MPIEXEC" "$T/bin/mpiexec"
"$T/bin/mpiexec" -n 1 sh -c 'echo ${FISHPLATE_SOFTIB_LIB-none}' >"$T/out" 2>"$T/err"
expect_out none
: >"$T/lib/softib/libibverbs.so.1"
"$T/bin/mpiexec" -n 1 sh -c 'echo ${FISHPLATE_SOFTIB_LIB-none}' >"$T/out" 2>"$T/err"
expect_out "$T/lib/softib/libibverbs.so.1"
finish_test
