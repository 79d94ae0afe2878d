# Helpers for the launcher's tests: run mpiexec, check its status, output and errors. Sourced by each test.
# A test continues after a failed check and exits 1 at the end; 77 means that it cannot run on this machine.
# SPDX-License-Identifier: Apache-2.0
set -u
T=${GUARDED_T:-$(mktemp -d)}
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
failures=0

# guarded: runs the script again under mpiexec, which always ends every descendant process: for tests that start daemons. The
# jobs of the test see nothing of that mpiexec.
guarded() {
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

# run mpiexec-arguments...: leaves rc, $T/out and $T/err.
run() {
    rc=0
    last="mpiexec $*"
    "$MPIEXEC" "$@" >"$T/out" 2>"$T/err" || rc=$?
}

# launch words...: runs another launcher; leaves rc, $T/out and $T/err.
launch() {
    rc=0
    last="$*"
    "$@" >"$T/out" 2>"$T/err" </dev/null || rc=$?
}

# pipes: $T/up, into which programs write lines for next_line, and $T/go, from which they read.
pipes() {
    mkfifo "$T/up" "$T/go"
    exec 6<>"$T/up" 7<>"$T/go"
}

# begin mpiexec-arguments...: starts mpiexec as `run` does, in the background, until end_of_job.
begin() {
    last="mpiexec $*"
    {
        rc=0
        "$MPIEXEC" "$@" >"$T/out" 2>"$T/err" 6>&- 7>&- || rc=$?
        echo $rc >"$T/rc"
        echo ended >&6
    } &
}

# Reads a line of the programs into $line; fails if the job has ended instead.
next_line() {
    read -r line <&6
    [ "$line" != ended ] || {
        fail "$last: the job ended too early, with status $(cat "$T/rc")"
        exit 1
    }
}

end_of_job() {
    while read -r line <&6 && [ "$line" != ended ]; do
        :
    done
    rc=$(cat "$T/rc")
}

# mpi_programs launcher-words...: runs point-to-point and collective MPI programs under the launcher. They are slow with a
# sanitizer: then a script runs all of them once, and later only the first, which tests how the ranks find each other.
programs="mpi_p2p_order mpi_p2p_sendrecv mpi_coll_chosen"
mpi_programs() {
    for program in $programs; do
        launch timeout 100 "$@" "$MPI_TESTS/$program"
        expect_rc 0
    done
    [ -z "${SANITIZED:-}" ] || programs=mpi_p2p_order
}

# True if the software adapter was built, so that ranks on different nodes can communicate.
has_softib() {
    [ -e "$(dirname "$MPIEXEC")/../lib/softib/libibverbs.so.1" ]
}

# Waits for some time for the end of a process that is not a child of this script; a zombie counts as ended.
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

# own_client: copies the client to a private path, so that its processes can be distinguished from those of other tests.
own_client() {
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

# The whole output, lines in any order (ranks run side by side).
expect_out() {
    sort "$T/out" >"$T/sorted"
    printf '%s\n' "$@" | sort >"$T/wanted"
    cmp -s "$T/sorted" "$T/wanted" || {
        fail "$last: output differs; expected (sorted):"
        cat "$T/wanted"
    }
}

expect_err() {
    grep -qF -- "$1" "$T/err" || fail "$last: standard error does not say: $1"
}

# Expects no output except the notice about shared cores, which depends on the machine.
expect_no_err() {
    ! grep -qv '^mpiexec: Note: [0-9]* ranks share the ' "$T/err" || fail "$last: nothing was expected on standard error"
}

# A remote shell that stays on this machine.
make_shell() {
    cat >"$T/shell" <<'END'
#!/bin/sh
shift
exec "$@"
END
    chmod +x "$T/shell"
}

finish() {
    [ "$failures" -eq 0 ] || exit 1
    echo ok
}
