#!/bin/sh
# A profiling tool sees the calls when it is preloaded and when it is linked before the library. Arguments: the program,
# the same program with the tool inside, the tool as a shared library.
#
# SPDX-License-Identifier: Apache-2.0

failed=0
expect_calls() {
    [ "$1" = "the tool saw 3 calls" ] && return
    echo "$2: found '$1'"
    failed=1
}
[ -z "$("$1")" ] || { echo "the program alone speaks"; failed=1; }
expect_calls "$(LD_PRELOAD=$3 "$1")" preloaded
expect_calls "$("$2")" linked
exit $failed
