# The boot module under MPICH's launcher Hydra, by PMI-1.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
command -v mpiexec.hydra >/dev/null || skip "mpiexec.hydra (package mpich) is not installed"
run_hydra() {
    last="mpiexec.hydra $*"
    rc=0
    mpiexec.hydra "$@" >"$T/out" 2>"$T/err" || rc=$?
}

for n in 1 2 5; do
    run_hydra -n $n "$CLIENT" exchange
    expect_rc 0
    [ "$(grep -c 'exchange ok' "$T/out")" -eq $n ] || fail "$last: not all ranks came through"
done
run_hydra -n 3 "$CLIENT" place
grep -q "rank 2 of 3 node 0 of 1 local 2 of 3 vnode -1 appnum 0 host $(hostname) launcher pmi1" "$T/out" ||
    fail "$last: the layout is wrong"
run_hydra -pmi-port -n 3 "$CLIENT" exchange
expect_rc 0
run_hydra -n 3 "$CLIENT" abort 1 5
[ "$rc" -ne 0 ] || fail "$last: an abort went unnoticed"
run_mpi_programs mpiexec.hydra -n 4
run_hydra -n 2 "$SPAWNER" hello
expect_rc 0
[ "$(grep -c '^child [01] of 2$' "$T/out")" -eq 2 ] || fail "$last: the new ranks did not come through"
# Variables of an outer job of this launcher do not affect a job of Hydra.
run_mpiexec -n 1 mpiexec.hydra -n 2 "$CLIENT" exchange
expect_rc 0
finish_test
