# A Slurm cluster of four nodes on this machine while the test runs: separate munged, slurmctld and four slurmd on free ports, with all
# their files in $T. Sourced after lib.sh; sets SLURM_CONF. The daemons are ended by process id at every exit of the test.
# SPDX-License-Identifier: Apache-2.0
[ "$(id -u)" -eq 0 ] || skip "slurmd needs root"
for tool in munged slurmctld slurmd srun python3; do
    command -v $tool >/dev/null || skip "$tool (packages slurm-wlm, munge) is not installed"
done
slurm_host=$(hostname)
export SLURM_CONF="$T/slurm.conf"

stop_slurm() {
    scancel --quiet --user="$(id -un)" 2>/dev/null
    for file in "$T"/slurmd.*.pid "$T/ctld.pid" "$T/munge/pid"; do
        [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
    done
    # The daemons write to $T until they have ended.
    for file in "$T"/slurmd.*.pid "$T/ctld.pid" "$T/munge/pid"; do
        tries=0
        while [ -s "$file" ] && kill -0 "$(cat "$file")" 2>/dev/null && [ $tries -lt 100 ]; do
            tries=$((tries + 1))
            sleep 0.1
        done
        [ ! -s "$file" ] || kill -KILL "$(cat "$file")" 2>/dev/null
    done
    rm -rf "$T"
}
trap stop_slurm EXIT

mkdir -p "$T/state" "$T/munge"
chmod 755 "$T" "$T/munge"
head -c 1024 /dev/urandom >"$T/munge/key"
chmod 400 "$T/munge/key"
munged --force --num-threads=1 --socket="$T/munge/s" --key-file="$T/munge/key" --log-file="$T/munge/log" \
    --pid-file="$T/munge/pid" --seed-file="$T/munge/seed" 2>"$T/err" || skip "munged does not start: $(cat "$T/err")"

ports=$(python3 -c '
import socket
sockets = [socket.socket() for _ in range(5)]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in sockets])')
cat >"$SLURM_CONF" <<END
ClusterName=fishplate
SlurmctldHost=$slurm_host(127.0.0.1)
SlurmctldPort=${ports%% *}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$T/munge/s
CredType=cred/munge
StateSaveLocation=$T/state
SlurmdSpoolDir=$T/spool.%n
TmpFS=$T/tmp.%n
SlurmctldPidFile=$T/ctld.pid
SlurmdPidFile=$T/slurmd.%n.pid
SlurmctldLogFile=$T/ctld.log
SlurmdLogFile=$T/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
PartitionName=p Nodes=n[0-3] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE
END
node=0
for port in ${ports#* }; do
    mkdir -p "$T/tmp.n$node" "$T/spool.n$node"
    echo "NodeName=n$node NodeHostname=$slurm_host NodeAddr=127.0.0.1 Port=$port CPUs=8 Sockets=1 CoresPerSocket=8" \
        "ThreadsPerCore=1 RealMemory=1 State=UNKNOWN" >>"$SLURM_CONF"
    node=$((node + 1))
done
slurmctld -f "$SLURM_CONF" 2>"$T/err" || skip "slurmctld does not start: $(cat "$T/err")"
for node in 0 1 2 3; do
    slurmd -f "$SLURM_CONF" -N n$node 2>"$T/err" || skip "slurmd does not start: $(cat "$T/err")"
done
tries=0
until [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 4 ]; do
    tries=$((tries + 1))
    [ $tries -lt 150 ] || skip "the nodes of Slurm do not come up: $(tail -n 3 "$T/ctld.log")"
    sleep 0.2
done
