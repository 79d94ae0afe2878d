# Helpers for the tests of faults on the software adapter, beside those of the launcher's tests. Sourced by each test.
# BIN: the build's programs; IB_TESTS, MPI_TESTS: programs to run; POOR: the adapter with fewer features.
# SPDX-License-Identifier: Apache-2.0
MPIEXEC=$BIN/mpiexec
SOFTIB=$BIN/softib
export SOFTIB
. "$TESTS/../launcher/lib.sh"
has_softib || skip "softib was not built"

# job ranks nodes [NAME=value ...] program [arguments]: runs it on virtual nodes; leaves rc, $T/out and $T/err.
job() {
    ranks=$1 nodes=$2
    shift 2
    settings=
    while case ${1-} in [A-Z]*=*) true ;; *) false ;; esac; do
        settings="$settings
$1"
        shift
    done
    # one setting per line, since values may contain spaces
    IFS='
'
    set -f
    # shellcheck disable=SC2086
    launch env $settings "$MPIEXEC" -n "$ranks" -vnodes "$nodes" -timeout 120 "$@"
    set +f
    unset IFS
    last="$settings $*"
}

# The sum of a counter over all ranks of a job with FISHPLATE_STATS=1.
counted() {
    awk -v name="$1" '$1 == name { sum = $2 } END { print sum + 0 }' "$T/err"
}

expect_counted() {
    [ "$(counted "$1")" -gt 0 ] || fail "$last: $1 is 0"
}

expect_no_text() {
    ! grep -qF -- "$1" "$T/err" || fail "$last: standard error contains: $1"
}
