# Helpers for the launcher's tests: run mpiexec, check its status, output and errors. Sourced by each test.
# A test continues after a failed check and exits 1 at the end; 77 means that it cannot run on this machine.
# SPDX-License-Identifier: Apache-2.0
set -u
T=${GUARDED_T:-$(mktemp -d)}
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
failures=0

# run_guarded: runs the script again under mpiexec, which ends every descendant process of the script, for tests that start daemons. The
# variables of that mpiexec are removed, so that they do not affect the jobs of the test.
run_guarded() {
    if [ "${GUARDED-}" = yes ]; then
        unset PMI_FD PMI_RANK PMI_SIZE PMI_APPNUM PMI_UNIVERSE_SIZE MPI_LOCALNRANKS MPI_LOCALRANKID
        for name in $(env | sed -n 's/^\(FISHPLATE_[A-Z_]*\)=.*/\1/p'); do
            unset "$name"
        done
        return
    fi
    rc=0
    GUARDED=yes GUARDED_T=$T "$MPIEXEC" -timeout 280 -n 1 sh "$0" || rc=$?
    exit $rc
}

skip() {
    echo "skipped: $*"
    exit 77
}

fail() {
    failures=$((failures + 1))
    echo "FAIL: $*"
    for file in out err; do
        [ ! -s "$T/$file" ] || {
            echo "  $file: $(wc -c <"$T/$file") bytes"
            head -c 2000 "$T/$file" | tr -d '\000' | sed "s/^/  $file: /" | head -20
        }
    done
}

# run_mpiexec ARGUMENTS...: sets rc; the output is in $T/out and $T/err.
run_mpiexec() {
    rc=0
    last="mpiexec $*"
    "$MPIEXEC" "$@" >"$T/out" 2>"$T/err" || rc=$?
}

# run_launcher COMMAND...: runs another launcher or a program; sets rc; the output is in $T/out and $T/err.
run_launcher() {
    rc=0
    last="$*"
    "$@" >"$T/out" 2>"$T/err" </dev/null || rc=$?
}

# open_pipes: creates $T/up, into which programs write lines for read_line_of_job, and $T/go, from which they read.
open_pipes() {
    mkfifo "$T/up" "$T/go"
    exec 6<>"$T/up" 7<>"$T/go"
}

# start_job ARGUMENTS...: starts mpiexec as run_mpiexec does, but in the background, until wait_for_job.
start_job() {
    last="mpiexec $*"
    {
        rc=0
        "$MPIEXEC" "$@" >"$T/out" 2>"$T/err" 6>&- 7>&- || rc=$?
        echo $rc >"$T/rc"
        echo ended >&6
    } &
}

# Reads a line of the programs into $line; fails if the job has ended instead.
read_line_of_job() {
    read -r line <&6
    [ "$line" != ended ] || {
        fail "$last: the job ended too early, with status $(cat "$T/rc")"
        exit 1
    }
}

wait_for_job() {
    while read -r line <&6 && [ "$line" != ended ]; do
        :
    done
    rc=$(cat "$T/rc")
}

# run_mpi_programs LAUNCHER...: runs point-to-point and collective MPI programs under the launcher. They are slow with a sanitizer, so
# there the first call of a script runs all of them and later calls only the first program.
programs="mpi_p2p_order mpi_p2p_sendrecv mpi_coll_chosen"
run_mpi_programs() {
    for program in $programs; do
        run_launcher timeout 100 "$@" "$MPI_TESTS/$program"
        expect_rc 0
    done
    [ -z "${SANITIZED:-}" ] || programs=mpi_p2p_order
}

# True if the software adapter was built, so that ranks on different nodes can communicate.
has_softib() {
    [ -e "$(dirname "$MPIEXEC")/../lib/softib/libibverbs.so.1" ]
}

# expect_gone PID: waits up to 60 s until a process that is not a child of this script has ended; a zombie counts as ended.
expect_gone() {
    tries=0
    while kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || {
            fail "$last: process $1 is still there: $(tr '\0' ' ' <"/proc/$1/cmdline")"
            kill -KILL "$1"
            return
        }
        sleep 0.1
    done
}

# copy_client: copies the client to a private path, which distinguishes its processes from those of other tests.
copy_client() {
    cp "$CLIENT" "$T/client"
    CLIENT=$T/client
}

expect_no_client() {
    for file in /proc/[0-9]*/exe; do
        [ "$(readlink "$file" 2>/dev/null)" != "$CLIENT" ] || expect_gone "$(basename "$(dirname "$file")")"
    done
}

expect_rc() {
    [ "$rc" -eq "$1" ] || fail "$last: exit status $rc, expected $1"
}

# expect_out LINE...: the output consists of these lines, in any order, since ranks run in parallel.
expect_out() {
    sort "$T/out" >"$T/sorted"
    printf '%s\n' "$@" | sort >"$T/wanted"
    cmp -s "$T/sorted" "$T/wanted" || {
        fail "$last: output differs; expected (sorted):"
        cat "$T/wanted"
    }
}

expect_err() {
    grep -qF -- "$1" "$T/err" || fail "$last: standard error does not contain: $1"
}

# Standard error is empty except for the note about shared cores, which depends on the machine.
expect_no_err() {
    ! grep -qv '^mpiexec: Note: [0-9]* ranks share the ' "$T/err" || fail "$last: nothing was expected on standard error"
}

# make_local_shell: creates $T/shell, a remote shell that runs the command on this machine.
make_local_shell() {
    cat >"$T/shell" <<'END'
#!/bin/sh
shift
exec "$@"
END
    chmod +x "$T/shell"
}

finish_test() {
    [ "$failures" -eq 0 ] || exit 1
    echo ok
}
