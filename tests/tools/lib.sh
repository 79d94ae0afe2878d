#!/bin/sh
# lib.sh: helpers of the tests of the tools. BIN is the build's bin folder; $scratch is a folder that is removed at the end of the test.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
BIN=$1
SOURCE=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "FAILED: $*"
    exit 1
}

# expect_line FILE PATTERN: some line of the file matches the extended expression.
expect_line() {
    if ! grep -Eq -- "$2" "$1"; then
        echo "FAILED: no line matches '$2' in:"
        cat "$1"
        exit 1
    fi
}

expect_json() {
    python3 -m json.tool "$1" >"$scratch/json.out" 2>"$scratch/json.err" || {
        cat "$scratch/json.err" "$1"
        fail "this is not JSON"
    }
}
