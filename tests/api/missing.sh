#!/bin/sh
# A call to a function that is not there is an error that one rank says in a sentence, whatever the error handler.
# Arguments: mpiexec, the program.
#
# SPDX-License-Identifier: Apache-2.0
set -u
said=$("$1" -n 3 "$2" 2>&1)
status=$?
failures=0
if [ $status -ne 0 ]; then
    echo "the program ended with status $status"
    failures=1
fi
for function in MPI_Comm_spawn MPI_Open_port; do
    lines=$(printf '%s\n' "$said" | grep -c "$function is not in Fishplate")
    if [ "$lines" -ne 1 ]; then
        echo "$function: $lines sentences, expected 1"
        failures=1
    fi
done
[ $failures -eq 0 ] || printf '%s\n' "$said"
exit $failures
