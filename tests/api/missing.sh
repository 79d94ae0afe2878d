#!/bin/sh
# A call to a function that is not there is an error that one rank of the job says in a sentence, whatever the error handler.
# Arguments: mpiexec, the program.
#
# SPDX-License-Identifier: Apache-2.0
set -u
failures=0
for nodes in 1 3; do
    said=$("$1" -vnodes $nodes -n 3 "$2" 2>&1)
    status=$?
    wrong=0
    if [ $status -ne 0 ]; then
        echo "the program ended with status $status on $nodes nodes"
        wrong=1
    fi
    for function in MPI_Comm_spawn MPI_Open_port; do
        lines=$(printf '%s\n' "$said" | grep -c "$function is not in Fishplate")
        if [ "$lines" -ne 1 ]; then
            echo "$function: $lines sentences on $nodes nodes, expected 1"
            wrong=1
        fi
    done
    [ $wrong -eq 0 ] || printf '%s\n' "$said"
    failures=$((failures + wrong))
done
exit $failures
