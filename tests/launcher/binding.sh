# Binding: one core a rank when there are enough, none when not, never outside the mask mpiexec was given.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
command -v taskset >/dev/null || skip "taskset is not installed"
mask='sed -n "s/^Cpus_allowed_list:[^0-9]*//p" /proc/self/status'
all=$(sh -c "$mask")
first=${all%%[-,]*}
cores=$(nproc)

run -n $((cores + 1)) sh -c "$mask"
[ "$(sort -u "$T/out")" = "$all" ] || fail "$last: ranks were bound although there are too many"
run -n 1 sh -c "$mask"
expect_out "$all"
run -n 1 -bind-to core sh -c "$mask"
expect_rc 0
last="inside taskset -c $first"
taskset -c "$first" "$MPIEXEC" -n 2 -bind-to core sh -c "$mask" >"$T/out"
expect_out "$first" "$first"
for what in none core socket numa hwthread; do
    run -n 2 -bind-to $what -map-by socket true
    expect_rc 0
done
run -n 2 -bind-to none sh -c "$mask"
expect_out "$all" "$all"
[ "$cores" -ge 2 ] || finish
run -n 2 -bind-to hwthread sh -c "$mask"
[ "$(sort -u "$T/out" | wc -l)" -eq 2 ] || fail "$last: both ranks are on the same processor"
finish
