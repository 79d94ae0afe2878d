# Helpers of the tests that run jobs on the software adapter, in addition to those of the launcher's tests. Sourced by each test.
# BIN: folder of the build's programs; IB_TESTS, MPI_TESTS: folders of test programs; POOR: the library of poor.c, whose adapter lacks
# features.
# SPDX-License-Identifier: Apache-2.0
MPIEXEC=$BIN/mpiexec
SOFTIB=$BIN/softib
export SOFTIB
. "$TESTS/../launcher/lib.sh"
has_softib || skip "softib was not built"

# True if all tests run over RoCE: SOFTIB_FABRIC=link=ethernet ctest -L '^ib$'
has_ethernet_ports() {
    case ${SOFTIB_FABRIC-} in *link=ethernet*) true ;; *) false ;; esac
}

# run_job RANKS NODES [NAME=value ...] PROGRAM [ARGUMENTS]: runs the program on virtual nodes with these environment variables. Sets rc;
# the output is in $T/out and $T/err.
run_job() {
    ranks=$1 nodes=$2
    shift 2
    settings=
    while case ${1-} in [A-Z]*=*) true ;; *) false ;; esac; do
        settings="$settings
$1"
        shift
    done
    # One variable per line, since values may contain spaces.
    IFS='
'
    set -f
    # shellcheck disable=SC2086
    run_launcher env $settings "$MPIEXEC" -n "$ranks" -vnodes "$nodes" -timeout 120 "$@"
    set +f
    unset IFS
    last="$settings $*"
}

# print_counter NAME: prints the sum of a counter over all ranks of a job with FISHPLATE_STATS=1.
print_counter() {
    awk -v name="$1" '$1 == name { sum = $2 } END { print sum + 0 }' "$T/err"
}

expect_counted() {
    [ "$(print_counter "$1")" -gt 0 ] || fail "$last: $1 is 0"
}

expect_no_text() {
    ! grep -qF -- "$1" "$T/err" || fail "$last: standard error contains: $1"
}
