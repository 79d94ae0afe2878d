#!/bin/sh
# install.sh BIN [FLAGS]: the installed tree works without the build folder: a program is compiled and run in another folder with
# the installed mpicc and mpiexec, also after the tree was moved.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

cmake --install "$(dirname "$BIN")" --prefix "$scratch/first" >"$scratch/log" || {
    cat "$scratch/log"
    fail "cmake --install"
}
mv "$scratch/first" "$scratch/moved"
prefix=$scratch/moved
[ -f "$prefix/include/mpi.h" ] || fail "mpi.h was not installed"

flags=${2:-} # a library built with sanitizers needs programs built with them
mkdir "$scratch/elsewhere"
cd "$scratch/elsewhere" || exit 1
cp "$SOURCE/examples/ring.c" .
env -u LD_LIBRARY_PATH "$prefix/bin/mpicc" -Wall -Werror ${flags:+"$flags"} ring.c -o ring
env -u LD_LIBRARY_PATH "$prefix/bin/mpiexec" -n 3 ./ring >out
expect_line out '^around 3 ranks: 3$'
if [ -d "$(dirname "$BIN")/lib/softib" ]; then # softib was built: it is there too, for ranks on two nodes
    env -u LD_LIBRARY_PATH "$prefix/bin/mpiexec" -n 4 -vnodes 2 ./ring >out
    expect_line out '^around 4 ranks: 6$'
fi
if [ -d "$(dirname "$BIN")/lib/softib" ] && [ -z "$flags" ]; then # a shell brings no sanitizer
    env -u LD_LIBRARY_PATH "$prefix/bin/softib" run sh -c 'echo "looks in $LD_LIBRARY_PATH"' >out
    expect_line out "^looks in $prefix/lib/softib$"
fi
# A sanitizer's library expects to be the first one loaded; with that check disabled it works behind a preloaded one.
[ -z "$flags" ] || export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
env -u LD_LIBRARY_PATH "$prefix/bin/fishplate" prof -- "$prefix/bin/mpiexec" -n 3 ./ring >out
expect_line out '^around 3 ranks: 3$'
expect_line out '^fishplate prof: .*, 3 ranks on 1 node$'
env -u LD_LIBRARY_PATH "$prefix/bin/fishplate" info --build >out
expect_line out "^library $prefix/"
# Documentation pages and their links; completion of commands, of the tests of bench, and of a command's options.
for page in README.md docs/install.md docs/from-mpich.md examples/ring.c; do
    [ -f "$prefix/share/doc/fishplate/$page" ] || fail "$page was not installed"
done
completed=$(bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _fishplate; echo "${COMPREPLY[@]}"' bash \
    "$prefix/share/bash-completion/completions/fishplate" fishplate bench reduce_)
[ "$completed" = "reduce_scatter reduce_scatter_block" ] || fail "'fishplate bench reduce_' becomes '$completed'"
completed=$(bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _fishplate; echo "${COMPREPLY[@]}"' bash \
    "$prefix/share/bash-completion/completions/fishplate" fishplate ch)
[ "$completed" = check ] || fail "'fishplate ch' becomes '$completed'"
if command -v zsh >/dev/null; then
    become=$("$SOURCE/tests/launcher/complete.zsh" "$prefix/share/zsh/site-functions" "fishplate che" "fishplate info --tunab")
    [ "$become" = "fishplate check 
fishplate info --tunables " ] || fail "zsh completes to '$become'"
fi
# `make install` builds only the installed files, and a folder chosen once remains the default.
unset MAKEFLAGS MAKELEVEL PREFIX
make -n -C "$SOURCE" install >plan
expect_line plan '^tools/progress build cmake --build .* --target installed$'
if grep CMAKE_INSTALL_PREFIX plan; then fail "make install changes the folder"; fi
make -n -C "$SOURCE" install PREFIX=/opt/mpi >plan
expect_line plan '^cmake -DCMAKE_INSTALL_PREFIX=/opt/mpi '
