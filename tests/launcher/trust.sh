# Authentication: an agent obeys only the mpiexec that started it, mpiexec accepts only agents that it started, and foreign
# connections cannot exhaust descriptors, memory or processor time of either. All attacks use the loopback interface.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
command -v python3 >/dev/null || skip "python3, which attacks, is not installed"
attack="python3 $TESTS/attack.py"

last="strangers who answer an agent"
timeout 200 $attack agent "$MPIEXEC" "$T" >"$T/out" 2>&1 || fail "$last"

# Many foreign connections: the job runs nevertheless. Then again with few descriptors for mpiexec.
run_mpiexec -timeout 200 -launcher-exec "$attack crowd" -hosts a -n 2 "$CLIENT" exchange
expect_rc 0
expect_out "exchange ok" "exchange ok"
last="a crowd at the door with 32 files"
rc=0
(
    ulimit -n 32
    "$MPIEXEC" -timeout 200 -launcher-exec "$attack files" -hosts a -n 1 "$CLIENT" exchange >"$T/out" 2>"$T/err"
) || rc=$?
expect_rc 0

# A relay between agent and mpiexec can read everything (nothing is encrypted), but never sees the cookie and cannot change anything.
run_mpiexec -timeout 100 -launcher-exec "$attack between listen" -hosts a -n 2 "$CLIENT" exchange
expect_rc 0
for kind in down twice up; do
    run_mpiexec -timeout 100 -launcher-exec "$attack between $kind" -hosts a -n 1 sh -c "echo ran; sleep 1000"
    expect_rc 1
    expect_err "Host a, with 1 rank, was lost"
    [ $kind != down ] || [ ! -s "$T/out" ] || fail "$last: a plan that was changed was carried out"
done
expect_err "a frame was forged, or changed on the network"
finish_test
