# Helpers for the launcher's tests: run mpiexec, look at its status, output and errors. Sourced by each test.
# A test goes on after a failed check and exits 1 at the end; 77 means that it could not run here.
# SPDX-License-Identifier: Apache-2.0
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
failures=0

skip() {
    echo "skipped: $*"
    exit 77
}

fail() {
    failures=$((failures + 1))
    echo "FAIL: $*"
    [ ! -s "$T/out" ] || sed 's/^/  out: /' "$T/out" | head -20
    [ ! -s "$T/err" ] || sed 's/^/  err: /' "$T/err" | head -20
}

# run mpiexec-arguments...: leaves rc, $T/out and $T/err.
run() {
    rc=0
    last="mpiexec $*"
    "$MPIEXEC" "$@" >"$T/out" 2>"$T/err" || rc=$?
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

expect_no_err() {
    [ ! -s "$T/err" ] || fail "$last: nothing was expected on standard error"
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
