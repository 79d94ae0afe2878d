#!/bin/sh
# module.sh BIN: the installed modulefile adds the installed tree to the shell's search paths, for any location of the tree.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

cmake --install "$(dirname "$BIN")" --prefix "$scratch/first" >"$scratch/log"
mv "$scratch/first" "$scratch/moved"
for modulecmd in /usr/lib/*/modulecmd.tcl /usr/share/modules/libexec/modulecmd.tcl /usr/libexec/modulecmd.tcl \
    /usr/lib/environment-modules/modulecmd.tcl; do
    [ ! -f "$modulecmd" ] || break
done
[ -f "$modulecmd" ] && command -v tclsh >/dev/null 2>&1 || skip "Environment Modules is not installed (environment-modules)"

MODULEPATH=$scratch/moved/share/modulefiles tclsh "$modulecmd" sh load fishplate >"$scratch/script" 2>"$scratch/err"
[ ! -s "$scratch/err" ] || fail "$(cat "$scratch/err")"
# shellcheck disable=SC1091
found=$(. "$scratch/script" && command -v mpicc && echo "$FISHPLATE_ROOT")
[ "$found" = "$scratch/moved/bin/mpicc
$scratch/moved" ] || fail "with the module loaded: $found"
