#!/bin/sh
# help.sh BIN: the laboratory runs as `fishplate-lab` and as `fishplate lab`; a study that starts jobs is refused inside a job.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"

"$BIN/fishplate" lab help >"$scratch/help"
expect_line "$scratch/help" '^Usage: fishplate-lab <command>'
for command in papers sim ib rails bcast barrier kernels; do
    expect_line "$scratch/help" "^  $command "
    "$BIN/fishplate-lab" $command --help >"$scratch/of"
    expect_line "$scratch/of" "^Usage: .*fishplate-lab $command"
done
# The old names of its commands still work.
"$BIN/fishplate" sim --help >"$scratch/of"
expect_line "$scratch/of" '^Usage: fishplate-lab sim'
"$BIN/fishplate" bench ib --help >"$scratch/of"
expect_line "$scratch/of" '^Usage: fishplate-lab ib'

if "$BIN/fishplate-lab" nonsense 2>"$scratch/err"; then
    fail "an unknown command was accepted"
fi
expect_line "$scratch/err" "^fishplate-lab: there is no command 'nonsense'"

for command in ib logp papers rails; do
    if "$BIN/mpiexec" -n 2 "$BIN/fishplate" bench $command >"$scratch/out" 2>"$scratch/err"; then
        fail "bench $command ran in each rank of a job"
    fi
    expect_line "$scratch/err" "Run it alone: fishplate-lab $command\$"
    [ "$(grep -c 'Run it alone' "$scratch/err")" = 1 ] || fail "more than one rank explains: $(cat "$scratch/err")"
done
if "$BIN/mpiexec" -n 2 "$BIN/fishplate-lab" barrier 2>"$scratch/err"; then
    fail "the study of barriers ran in each rank of a job"
fi
expect_line "$scratch/err" 'mpiexec -n 4 fishplate bench barrier'

# Without the laboratory the tool prints how to get it.
mkdir -p "$scratch/bin"
cp "$BIN/fishplate" "$scratch/bin/"
if LD_LIBRARY_PATH="$BIN/../lib" "$scratch/bin/fishplate" lab papers 2>"$scratch/err"; then
    fail "ran a laboratory that is not installed"
fi
expect_line "$scratch/err" 'make lab'
