#!/bin/sh
# typo.sh: a mistyped or retired variable, or a value out of range, is reported once with what to write instead, and the program runs.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

FISHPLATE_LOGG=debug "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_LOGG is not a tunable; did you mean FISHPLATE_LOG\?'
FISHPLATE_LOG=loud "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_LOG=loud'
FISHPLATE_STARVED_RENDEZVOUS=64 "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_STARVED_RENDEZVOUS no longer exists and is ignored: .*'
FISHPLATE_MALLOC=leave "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_MALLOC no longer exists and is ignored: .*MALLOC_TRIM_THRESHOLD_.*'
FISHPLATE_LAB=YELDS=0 "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_LAB: FISHPLATE_YELDS is not a tunable; did you mean FISHPLATE_YIELDS\?'
FISHPLATE_YIELDS=0 "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_YIELDS=0 is for experiments only and is ignored; FISHPLATE_LAB=YIELDS=0 sets it.'

FISHPLATE_LOGG=debug "$BIN/mpiexec" -n 3 "$BIN/fishplate" bench --time 0.001 --sizes 8 barrier \
    >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_LOGG is not a tunable; did you mean FISHPLATE_LOG\?'
[ "$(grep -c 'FISHPLATE_LOGG is not' "$scratch/err")" = 1 ] || {
    cat "$scratch/err"
    fail "three ranks said it; one is enough"
}

# One warning names the mistake and the nearest valid value; the job runs.
expect_warning() {
    env "$1" "$BIN/mpiexec" -oversubscribe -n 3 "$BIN/fishplate" bench --time 0.001 --sizes 8 barrier >/dev/null 2>"$scratch/err" ||
        { cat "$scratch/err"; fail "$1 ends the job"; }
    expect_line "$scratch/err" "$2"
    [ "$(wc -l <"$scratch/err")" = 1 ] || { cat "$scratch/err"; fail "$1: more than one line"; }
}
expect_warning FISHPLATE_DEBUG=coll,lekas 'FISHPLATE_DEBUG=lekas is not one of .*; did you mean leaks\? It is ignored.'
expect_warning FISHPLATE_DEBUG=info 'FISHPLATE_DEBUG=info is not one of .*; did you mean FISHPLATE_LOG=info\? It is ignored.'
expect_warning FISHPLATE_DEBUG=everything 'FISHPLATE_DEBUG=everything is not one of coll\|leaks\|match\|rma; it is ignored.'
expect_warning FISHPLATE_COLL=alreduce=ring "FISHPLATE_COLL: there is no operation 'alreduce'; did you mean 'allreduce'\? It is ignored."
expect_warning FISHPLATE_COLL=bcast=binomail "FISHPLATE_COLL: bcast has no algorithm 'binomail'; did you mean 'binomial'\? It is ignored."
expect_warning FISHPLATE_COLL=determinstic "FISHPLATE_COLL: 'determinstic' is unknown; did you mean 'deterministic'\? It is ignored."
expect_warning FISHPLATE_PROGRESS=treads 'FISHPLATE_PROGRESS=treads is not one of calls\|thread; did you mean thread\? calls is used instead.'

# A mistyped setting does not replace the cause of an error.
! FISHPLATE_EAGER_MAX=12q FISHPLATE_VERBS=/no/lib "$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" bench barrier >/dev/null 2>"$scratch/err" ||
    fail "a library that is not there was loaded"
expect_line "$scratch/err" 'no network path from .*: /no/lib cannot be loaded'

# Settings are read from the site's file beside the library, the user's file in XDG_CONFIG_HOME, and the environment; later sources take
# precedence, and errors name file and line. A copied tree has its own site file.
mkdir -p "$scratch/tree/etc" "$scratch/user"
mkdir "$scratch/tree/lib"
cp -L "$BIN/../lib/libmpi_abi.so.1" "$scratch/tree/lib/"
mkdir "$scratch/tree/bin"
cp "$BIN/fishplate" "$scratch/tree/bin/"
printf 'EAGER_MAX = 8k\nSPIN_US = 7\nLOG = error\n' >"$scratch/tree/etc/fishplate.conf"
printf '# mine\nSPIN_US = 9\nFISHPLATE_LOGG = 1\n' >"$scratch/user/fishplate.conf"
XDG_CONFIG_HOME=$scratch/user FISHPLATE_LOG=warn LD_LIBRARY_PATH=$scratch/tree/lib "$scratch/tree/bin/fishplate" info --changed >"$scratch/out" 2>"$scratch/err"
expect_line "$scratch/out" 'FISHPLATE_EAGER_MAX=8k \(site file;'
expect_line "$scratch/out" 'FISHPLATE_SPIN_US=9 \(user file;'
expect_line "$scratch/out" 'FISHPLATE_LOG=warn \(environment;'
# A file that is no text, and a site file that this user cannot read, are reported.
printf 'LOG = info\n\0' >"$scratch/user/fishplate.conf"
XDG_CONFIG_HOME=$scratch/user "$BIN/fishplate" info --changed >/dev/null 2>"$scratch/err2"
expect_line "$scratch/err2" '/user/fishplate.conf is ignored: it is not a text file.'
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$scratch" "$scratch/tree" "$scratch/tree/etc" "$scratch/tree/bin" "$scratch/tree/lib"
    chmod 600 "$scratch/tree/etc/fishplate.conf"
    LD_LIBRARY_PATH=$scratch/tree/lib setpriv --reuid=65534 --regid=65534 --clear-groups "$scratch/tree/bin/fishplate" info --changed \
        >/dev/null 2>"$scratch/err2"
    expect_line "$scratch/err2" '/etc/fishplate.conf is ignored: Permission denied.'
fi
expect_line "$scratch/err" '/user/fishplate.conf:3: FISHPLATE_LOGG is not a tunable; did you mean FISHPLATE_LOG\?'
