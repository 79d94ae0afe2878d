# Time limits of the job and of its start. Both messages name the ranks that did not finish.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_local_shell

run_mpiexec -timeout 1 -n 3 sleep 1000
expect_rc 124
expect_err "within 1 second (-timeout)"
expect_err "ranks 0-2 on host $(hostname). They were ended."
run_mpiexec -timeout 3 -n 3 sh -c '[ $PMI_RANK = 1 ] || exit 0; trap "" TERM; while :; do sleep 1000; done'
expect_rc 124
expect_err "Still running: rank 1 on host $(hostname). It was ended."
run_mpiexec -timeout 1000 -n 2 true
expect_rc 0
MPIEXEC_TIMEOUT=1 run_mpiexec -n 1 sleep 1000
expect_rc 124

# Ranks that stop waiting themselves report the rank that they waited for; mpiexec may report it too if it is faster.
run_mpiexec -genv FISHPLATE_INIT_TIMEOUT 3 -n 4 "$CLIENT" absent 2
expect_rc 9
expect_err "not all ranks arrived: rank 2 on host $(hostname)"
FISHPLATE_INIT_TIMEOUT=5 run_mpiexec -launcher-exec "$T/shell" -hosts a,b -n 2 "$CLIENT" absent 1
expect_rc 9
expect_err "not all ranks arrived: rank 1 on host b"

# mpiexec reports ranks that wait for ever, and does not end them.
mkfifo "$T/output"
exec 6<>"$T/output"
last="mpiexec with ranks that wait"
"$MPIEXEC" -oversubscribe -genv FISHPLATE_INIT_TIMEOUT 3 -n 4 env FISHPLATE_INIT_TIMEOUT=1000 "$CLIENT" absent 2 >"$T/out" 2>&6 6>&- &
pid=$!
read -r line <&6
echo "$line" >"$T/err"
expect_err "Start-up has waited 3 seconds (FISHPLATE_INIT_TIMEOUT) for rank 2 on host $(hostname)."
rc=0
kill -TERM $pid
wait $pid || rc=$?
expect_rc 143
exec 6>&-
finish_test
