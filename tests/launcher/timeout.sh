# Deadlines: of the job, and of start-up. Both name who is to blame.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_shell

run -timeout 1 -n 3 sleep 1000
expect_rc 124
expect_err "ranks 0-2 on host $(hostname)"
run -timeout 3 -n 3 sh -c '[ $PMI_RANK = 1 ] || exit 0; trap "" TERM; while :; do sleep 1000; done'
expect_rc 124
expect_err "Still running: rank 1 on host $(hostname)"
run -timeout 1000 -n 2 true
expect_rc 0
MPIEXEC_TIMEOUT=1 run -n 1 sleep 1000
expect_rc 124

run -genv FISHPLATE_INIT_TIMEOUT 3 -n 4 "$CLIENT" absent 2
expect_rc 9
expect_err "Start-up has waited 3 seconds (FISHPLATE_INIT_TIMEOUT) for rank 2 on host $(hostname)."
expect_err "not all ranks arrived: rank 2 on host $(hostname)"
FISHPLATE_INIT_TIMEOUT=5 run -launcher-exec "$T/shell" -hosts a,b -n 2 "$CLIENT" absent 1
expect_rc 9
expect_err "for rank 1 on host b."
finish
