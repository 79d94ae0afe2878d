# The library under Open MPI's launcher, which speaks PMIx.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
orte=$(command -v orterun.openmpi || command -v orterun) || skip "orterun (package openmpi-bin) is not installed"
[ -n "$(ldconfig -p 2>/dev/null | grep libpmix.so.2)" ] || skip "libpmix.so.2 (package libpmix2) is not installed"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR="$T"
host=$(hostname)
copy_client
timeout 60 "$orte" --oversubscribe -n 1 true >"$T/out" 2>"$T/err" || skip "orterun does not work here: $(head -n 3 "$T/err")"

run_orterun() {
    run_launcher timeout 60 "$orte" --oversubscribe "$@"
}

for n in 1 2 5; do
    run_orterun -n $n "$CLIENT" exchange
    expect_rc 0
    [ "$(grep -c 'exchange ok' "$T/out")" -eq $n ] || fail "$last: not all ranks came through"
done
run_orterun -n 2 "$CLIENT" place : -n 1 "$CLIENT" place
grep -q "rank 2 of 3 node 0 of 1 local 2 of 3 vnode -1 appnum 1 host $host launcher pmix" "$T/out" ||
    fail "$last: the layout is wrong"
run_mpi_programs "$orte" --oversubscribe -n 4

# Processes that start later, by PMIx_Spawn; they need slots.
run_orterun -H localhost:8 -n 2 "$SPAWNER" hello
expect_rc 0
sort "$T/out" >"$T/sorted" && mv "$T/sorted" "$T/out"
expect_out "child 0 of 2" "child 1 of 2"
expect_no_err
run_orterun -H localhost:8 -n 2 "$SPAWNER" fail
[ "$rc" -ne 0 ] || fail "$last: a spawned process that failed went unnoticed"

run_orterun -n 3 "$CLIENT" abort 1 5 "it is enough"
expect_rc 5
expect_err "Rank 1 on $host ended the job with code 5: it is enough"
run_orterun -n 3 "$CLIENT" crash 1
[ "$rc" -ne 0 ] || fail "$last: a crash went unnoticed"
expect_no_client

# Two programs have a launcher's variables but are not part of a job: one that a rank starts, and one whose launcher has ended.
PMIX_NAMESPACE=nobody PMIX_RANK=0 run_launcher "$CLIENT" place
[ "$rc" -ne 0 ] || fail "$last: a job without a launcher ran"
expect_err "unset PMIX_NAMESPACE to run it alone"

# A killed orterun cannot end its ranks: they detect its death themselves.
mkfifo "$T/up"
exec 6<>"$T/up"
"$orte" --oversubscribe -n 2 "$CLIENT" stay "$T/up" >"$T/out" 2>"$T/err" 6>&- &
job=$!
read -r pid1 <&6
read -r pid2 <&6
last="killing orterun"
kill -KILL $job
wait $job 2>/dev/null
expect_gone "$pid1"
expect_gone "$pid2"
finish_test
