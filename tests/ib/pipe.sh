#!/bin/sh
# pipe.sh: messages that are registered in pieces, in new and in reused memory, arrive completely and are counted.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

# run_fresh NAME=value...: runs ib_fresh, and sets new, again and later to the number of messages that were sent in pieces: of 48 in new
# memory, 48 in the same memory again, and 48 later.
run_fresh() {
    run_job 2 2 "$@" "$IB_TESTS/ib_fresh"
    expect_rc 0
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^new \([0-9]*\) again \([0-9]*\) later \([0-9]*\)$/\1 \2 \3/p' "$T/out")
    new=${1-none} again=${2-none} later=${3-none}
}
expect_pieces() { # arguments: expected values of new, again and later, each a number or a range
    for pair in "$new:$1" "$again:$2" "$later:$3"; do
        value=${pair%%:*} range=${pair#*:}
        [ "$value" -ge "${range%-*}" ] && [ "$value" -le "${range#*-}" ] ||
            fail "$last: new $new, again $again, later $later; expected $1, $2, $3"
    done
}

# Messages are sent in pieces only if the setting requests the protocol.
run_fresh SOFTIB_FABRIC=pin=2us
expect_pieces 0 0 0
run_fresh SOFTIB_FABRIC=pin=2us FISHPLATE_RENDEZVOUS=rput
expect_pieces 0 0 0
run_fresh FISHPLATE_RENDEZVOUS=pipe
expect_pieces 48 48 48
run_fresh FISHPLATE_RENDEZVOUS=pipe FISHPLATE_REG_CACHE=0
expect_pieces 48 48 48
# The same over two rails.
run_fresh FISHPLATE_RENDEZVOUS=pipe "SOFTIB_FABRIC=hcas=2 pin=1us"
expect_pieces 48 48 48
finish_test
