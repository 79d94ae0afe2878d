#!/bin/sh
# reserve.sh REPLAY CC: the reservation of rails as a model (reserve.pml). `spin` visits every interleaving: no deadlock, no endless
# cycle under weak fairness, no rail reserved forever; and it finds the cycle of the tie-break as printed in the paper. Model and code
# are compared: both reach the same number of states, and the code follows runs of the model step by step.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
replay=$1
cc=$2
model=$(cd "$(dirname "$0")" && pwd)/reserve.pml
if ! command -v spin >/dev/null 2>&1; then
    echo "spin is not installed: nothing was checked."
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
    echo "FAILED: $*"
    exit 1
}

# check_model NAME "PAN'S FLAGS" "RUN'S OPTIONS" MODEL'S FLAGS...: builds the verifier and runs it; its report is NAME.
check_model() {
    name=$1 build=$2 options=$3
    shift 3
    spin "$@" -a "$model" >"$name.spin" || fail "spin: $(cat "$name.spin")"
    # shellcheck disable=SC2086
    "$cc" -w $build -o pan pan.c
    # shellcheck disable=SC2086
    ./pan $options >"$name" || fail "$name: pan: $(cat "$name")"
    if grep -q "max search depth too small\|out of memory" "$name"; then
        fail "$name was not searched whole: $(cat "$name")"
    fi
}

count_errors() {
    sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$1"
}

# The model has one state before its processes start, and two states after each final state.
expect_same_states() {
    name=$1
    shift
    stored=$(awk '/states, stored/ { printf "%.0f", $1 }' "$name")
    states=$("$replay" count "$@")
    [ "$stored" = $((${states% *} + 2 * ${states#* } + 1)) ] ||
        fail "$name: the model has $stored states, the code $states (states and ends)"
    echo "$name: no error in $stored states of the model, and the code has the same"
}

circle="-DTO0=1 -DTO1=2 -DTO2=0"
# shellcheck disable=SC2086
check_model safety "-O1 -DSAFETY -DNOREDUCE -DCOLLAPSE" "-m100000 -w20" -DNODES=3 -DRAILS=2 $circle
[ "$(count_errors safety)" = 0 ] || fail "$(cat safety)"
expect_same_states safety 3 2 1 1 1 2 0

check_model pairs "-DSAFETY -DNOREDUCE -DCOLLAPSE" "-m100000 -w20" -DNODES=2 -DRAILS=2 -DMESSAGES=2 -DTO0=1 -DTO1=0 -DTO2=0
[ "$(count_errors pairs)" = 0 ] || fail "$(cat pairs)"
expect_same_states pairs 2 2 2 1 1 0 0

# shellcheck disable=SC2086
check_model ends "-DNFAIR=4 -DNOREDUCE" "-a -f -m100000 -w18" -DNODES=3 -DRAILS=1 -DLIVENESS $circle
[ "$(count_errors ends)" = 0 ] || fail "$(cat ends)"
echo "ends: under weak fairness every run ends with all messages delivered and all rails free"

# shellcheck disable=SC2086
check_model printed "-DNFAIR=4 -DNOREDUCE" "-a -f -m100000 -w18" -DNODES=3 -DRAILS=1 -DLIVENESS -DPRINTED $circle
[ "$(count_errors printed)" != 0 ] || fail "the printed tie-break was not found to be wrong"
echo "printed: the tie-break as printed can go on for ever"

events=0
for seed in 1 2 3 4 5 6 7 8 9 10; do
    # shellcheck disable=SC2086
    spin -T "-n$seed" -DNODES=3 -DRAILS=2 -DMESSAGES=3 $circle "$model" >trace
    more=$("$replay" follow 3 2 3 1 1 2 0 <trace) || fail "seed $seed: $more"
    events=$((events + more))
done
[ "$events" -gt 500 ] || fail "the model's runs had only $events events"
echo "traces: the code followed 10 runs of the model, $events events"
