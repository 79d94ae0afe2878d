#!/bin/sh
# dist.sh BIN: `make dist` packs the committed files, with the same bytes each time, and CMake can configure the unpacked tree.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
git -C "$SOURCE" rev-parse HEAD >"$scratch/head" 2>/dev/null || skip "this is not a git checkout"

for copy in one two; do
    mkdir "$scratch/$copy"
    make -s -C "$SOURCE" dist DIST="$scratch/$copy" >"$scratch/log" 2>&1 || {
        cat "$scratch/log"
        fail "make dist"
    }
done
name=$(basename "$(ls "$scratch"/one/fishplate-*.tar.gz)" .tar.gz)
cmp "$scratch/one/$name.tar.gz" "$scratch/two/$name.tar.gz" || fail "two archives of one commit differ"
tar -xzf "$scratch/one/$name.tar.gz" -C "$scratch"
[ "$(cat "$scratch/$name/VERSION.git")" = "$(cat "$scratch/head")" ] || fail "the archive does not say which commit it is"
cmake -S "$scratch/$name" -B "$scratch/build" -DBUILD_TESTING=OFF >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    fail "what was unpacked cannot be configured"
}
