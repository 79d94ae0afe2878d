# With few file descriptors, and without /proc: every job ends with an error message and leaves nothing behind. Every process
# of a job holds one end of a pipe open; a read at the other end returns when the last of them has ended.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
mkfifo "$T/alive"
cat >"$T/rank" <<'END'
#!/bin/sh
trap '' TERM
(setsid sleep 1000 >/dev/null 2>&1 </dev/null &)
setsid sleep 1000 &
echo up
sleep 1000
sleep 1000
END
chmod +x "$T/rank"

wait_until_gone() {
    timeout 60 cat <"$T/alive" >/dev/null 7>&- &
    reader=$!
    exec 7>&-
    wait $reader || fail "$last: a process was left behind"
}

# run_with_limit COMMAND MPIEXEC-ARGUMENTS...: runs mpiexec in a shell in which COMMAND has set a limit; kills it after 60 s.
run_with_limit() {
    setting=$1
    shift
    last="$setting; mpiexec $*"
    exec 7<>"$T/alive"
    rc=0
    SETTING=$setting timeout -s KILL 60 sh -c 'eval "$SETTING"; exec "$@"' sh "$MPIEXEC" "$@" \
        >"$T/out" 2>"$T/err" 5>"$T/alive" 7>&- || rc=$?
    wait_until_gone
}

# Too few descriptors for all ranks; the limit is reached at different places.
for n in 6 9 12 15 18 19 20 24; do
    run_with_limit "ulimit -n $n" -n 12 "$T/rank"
    expect_rc 1
    expect_err "ulimit -n"
done
make_local_shell
run_with_limit "ulimit -n 24" -launcher-exec "$T/shell" -hosts a,b -n 16 "$T/rank"
expect_rc 1

# Too few processes for mpiexec and two ranks, and too little memory for MPI_Init. Limits of processes do not bind root.
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
if [ "$(id -u)" -eq 0 ] && command -v prlimit >/dev/null && $nobody "$MPIEXEC" -version >/dev/null 2>&1; then
    for n in 1 2 3 4; do
        last="$n processes: mpiexec -n 2"
        $nobody prlimit --nproc=$n "$MPIEXEC" -n 2 true >"$T/out" 2>"$T/err" && fail "$last: exit status 0"
        expect_err "ulimit -u"
    done
fi
if [ -z "${SANITIZED:-}" ]; then
    for kib in 50000 100000; do
        run_with_limit "ulimit -v $kib" -n 2 "$MPI_TESTS/mpi_p2p_order"
        [ "$rc" -ne 0 ] || fail "$last: exit status 0"
        expect_err "ulimit -v"
    done
fi

# The smallest sufficient limit.
run_with_limit "ulimit -n 32" -n 3 true
expect_rc 0

# All descriptors are used up after the start, when mpiexec must end the job.
start_two_ranks() {
    exec 7<>"$T/alive" 6<>"$T/up"
    "$MPIEXEC" -n 2 "$T/rank" >&6 2>"$T/err" 5>"$T/alive" 6>&- 7>&- &
    pid=$!
    read -r _ <&6
    read -r _ <&6
}
wait_for_end() {
    rc=0
    wait $pid 2>/dev/null || rc=$?
    exec 6>&-
    wait_until_gone
}
mkfifo "$T/up"
if command -v prlimit >/dev/null; then
    for whom in rank worker; do
        last="KILL to the $whom while mpiexec may open no file"
        start_two_ranks
        # The first child and the first grandchild; the children file separates pids by blanks.
        reaper=$(cat /proc/$pid/task/$pid/children)
        reaper=${reaper%% *}
        worker=$(cat /proc/$reaper/task/$reaper/children)
        worker=${worker%% *}
        ranks=$(cat /proc/$worker/task/$worker/children)
        prlimit --pid $pid --nofile=3:3
        prlimit --pid $reaper --nofile=3:3
        prlimit --pid $worker --nofile=3:3
        if [ $whom = rank ]; then
            kill -KILL "${ranks%% *}"
        else
            kill -KILL "$worker"
        fi
        wait_for_end
        expect_rc 137
    done
fi

# Without /proc descendants cannot be found.
hide='mount -t tmpfs none /proc 2>/dev/null || exit 77'
if unshare -m sh -c "$hide" 2>/dev/null; then
    hidden="unshare -m"
elif unshare -rm sh -c "$hide" 2>/dev/null; then
    hidden="unshare -rm"
else
    echo "not tried: no name space without /proc can be made here"
    finish_test
    exit
fi
cat >"$T/hidden" <<END
#!/bin/sh
exec $hidden sh -c '$hide; exec "\$@"' sh "$MPIEXEC" "\$@"
END
chmod +x "$T/hidden"
MPIEXEC=$T/hidden
run_with_limit : -n 2 true
expect_rc 0
run_with_limit : -timeout 1 -n 2 "$T/rank"
expect_rc 124
run_with_limit : -launcher-exec "$T/shell" -hosts a,b -timeout 2 -n 2 "$T/rank"
expect_rc 124
grep -q up "$T/out" || fail "$last: no agent can be started without /proc"
for sig in TERM KILL; do
    last="SIG$sig to mpiexec without /proc"
    start_two_ranks
    kill -$sig $pid
    wait_for_end
done
finish_test
