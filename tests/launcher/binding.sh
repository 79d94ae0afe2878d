# Binding: one core per rank if there are enough cores, else no binding; never outside mpiexec's own processor mask.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
command -v taskset >/dev/null || skip "taskset is not installed"
mask='sed -n "s/^Cpus_allowed_list:[^0-9]*//p" /proc/self/status'
all=$(sh -c "$mask")
first=${all%%[-,]*}
cores=$(nproc)

run_mpiexec -n $((cores + 1)) sh -c "$mask"
[ "$(sort -u "$T/out")" = "$all" ] || fail "$last: ranks were bound although there are too many"
run_mpiexec -n 1 sh -c "$mask"
expect_out "$all"
run_mpiexec -n 1 -bind-to core sh -c "$mask"
expect_rc 0
last="inside taskset -c $first"
taskset -c "$first" "$MPIEXEC" -n 2 -bind-to core -oversubscribe sh -c "$mask" >"$T/out"
expect_out "$first" "$first"
# More ranks than cores: as with other launchers, a request for a core per rank is an error.
if taskset -c "$first" "$MPIEXEC" -n 2 -bind-to core true 2>"$T/err"; then
    fail "$last: two ranks were bound to one core without -oversubscribe"
fi
grep -q -- '-bind-to core: 2 ranks would share 1 core; -oversubscribe permits it' "$T/err" || fail "$last: $(cat "$T/err")"
grep -q 'Note:' "$T/err" && fail "a note is printed before the error: $(cat "$T/err")"
for what in none core l3 socket numa hwthread; do
    run_mpiexec -n 2 -oversubscribe -bind-to $what -map-by socket true
    expect_rc 0
done
run_mpiexec -n 2 -bind-to none sh -c "$mask"
expect_out "$all" "$all"
# Ranks per socket and other units: without -n as many ranks as units; each rank is bound within its unit.
sockets=$(cat /sys/devices/system/cpu/cpu[0-9]*/topology/package_cpus_list | sort -u | wc -l)
for unit in socket numa l3 core; do
    run_mpiexec -map-by ppr:2:$unit -bind-to none sh -c 'echo $FISHPLATE_LOCAL_SIZE'
    expect_rc 0
    size=$(head -n 1 "$T/out")
    [ "$(wc -l <"$T/out")" -eq "$size" ] && [ $((size % 2)) -eq 0 ] || fail "$last: $size ranks"
    [ "$unit" != socket ] || [ "$size" -eq $((2 * sockets)) ] || fail "$last: $size ranks on $sockets sockets"
done
run_mpiexec -map-by ppr:1:core -l sh -c "$mask"
expect_rc 0
[ "$(wc -l <"$T/out")" -eq "$(sort -u -k 2 "$T/out" | wc -l)" ] || fail "$last: two ranks are on the same core"
# More ranks than the places of -map-by: the ranks of a socket share its cores instead of all being bound to the first core.
run_mpiexec -map-by ppr:1:socket -n "$cores" sh -c "$mask"
expect_rc 0
[ "$cores" -le "$sockets" ] || expect_err "Note: -map-by ppr places $sockets rank"
[ "$(sort -u "$T/out" | wc -l)" -eq "$cores" ] || fail "$last: two ranks are on the same core"
run_mpiexec -n 5000 true
expect_rc 2
expect_err "5000 ranks on one node: shared memory connects at most 4096"
[ "$cores" -ge 2 ] || finish_test
# A rank file numbers cores among the permitted ones.
printf 'rank 0=localhost slot=1\nrank 1=localhost slot=0:0\nrank 2=localhost slot=0-1\nrank 3=localhost\n' >"$T/ranks"
run_mpiexec -rankfile "$T/ranks" -prepend-pattern '%r ' sh -c "$mask"
expect_rc 0
first_core() { sed -n "s/^$1 //p" "$T/out"; }
[ "$(first_core 1)" != "$(first_core 0)" ] && [ "$(first_core 2)" != "$(first_core 0)" ] && [ "$(first_core 3)" = "$all" ] || { cat "$T/out"; fail "$last: the slots"; }
run_mpiexec -rankfile "$T/ranks" -bind-to none sh -c "$mask"
expect_out "$all" "$all" "$all" "$all"
run_mpiexec -n 2 -bind-to hwthread sh -c "$mask"
[ "$(sort -u "$T/out" | wc -l)" -eq 2 ] || fail "$last: both ranks are on the same processor"
finish_test
