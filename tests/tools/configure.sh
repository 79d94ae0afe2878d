#!/bin/sh
# configure.sh: tools/configure runs CMake only if the folder is new, packages or options changed, or the last attempt failed.
# Scripts replace cmake and dpkg-query; they record the calls and report the installed packages.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

tree=$scratch/tree
mkdir -p "$tree/tools" "$scratch/bin"
(cd "$SOURCE" && cp --parents tools/configure tools/setup tools/progress tools/packages.txt softib/packages.txt \
    tests/*/packages.txt launcher/packages.txt packaging/packages.txt "$tree")
cat >"$scratch/bin/cmake" <<'FAKE'
#!/bin/sh
echo "$@" >>"$CALLS"
mkdir -p folder
echo cache >folder/CMakeCache.txt
[ ! -f "$CALLS.fail" ] || { echo "no such header"; exit 1; }
FAKE
cat >"$scratch/bin/dpkg-query" <<'FAKE'
#!/bin/sh
cat "$CALLS.packages"
FAKE
chmod +x "$scratch/bin/cmake" "$scratch/bin/dpkg-query"
export CALLS="$scratch/calls" PATH="$scratch/bin:$PATH"
: >"$CALLS"
echo "gcc 12 install ok installed" >"$CALLS.packages"

# expect_calls NUMBER WHAT [OPTION...]: runs tools/configure with these options; cmake must have run NUMBER times in all.
expect_calls() {
    number=$1 what=$2
    shift 2
    (cd "$tree" && tools/configure folder "$@") >"$scratch/out" 2>&1 || fail "$what: $(cat "$scratch/out")"
    [ "$(wc -l <"$CALLS")" = "$number" ] || fail "$what: cmake ran $(wc -l <"$CALLS") times, not $number"
}

expect_calls 1 "a new folder"
expect_calls 1 "nothing changed"
echo "libibverbs-dev 44 install ok installed" >>"$CALLS.packages"
expect_calls 2 "a package was installed"
expect_line "$scratch/out" "^Configuring folder again"
expect_calls 2 "nothing changed since the package"
expect_calls 3 "an option was added" -DFISHPLATE_SANITIZE=thread
expect_calls 3 "the same option" -DFISHPLATE_SANITIZE=thread
expect_line "$CALLS" "-DFISHPLATE_SANITIZE=thread"

# A failure prints its reason, keeps the earlier configuration, and is tried again.
: >"$CALLS.fail"
if (cd "$tree" && tools/configure folder) >"$scratch/out" 2>&1; then
    fail "cmake failed and nobody noticed"
fi
expect_line "$scratch/out" "no such header"
[ -f "$tree/folder/CMakeCache.txt" ] || fail "a folder that was configured before lost its options"
rm -r "$tree/folder"
! (cd "$tree" && tools/configure folder) >"$scratch/out" 2>&1 || fail "cmake failed in a new folder and nobody noticed"
[ ! -f "$tree/folder/CMakeCache.txt" ] || fail "a failed first attempt left something that looks configured"
rm "$CALLS.fail"
expect_calls 6 "after a failure"

# tools/progress: no output for a fast command, the last lines and the status of a failing one; on a terminal one line that is updated.
PATH=${PATH#*:}
"$SOURCE/tools/progress" build echo ready >"$scratch/out" 2>&1
[ ! -s "$scratch/out" ] || fail "a quick command: $(cat "$scratch/out")"
status=0
"$SOURCE/tools/progress" build sh -c 'echo broken; exit 3' >"$scratch/out" 2>&1 || status=$?
[ $status = 3 ] || fail "the status of the command is $status"
expect_line "$scratch/out" '^broken$'
if command -v script >/dev/null; then
    TERM=xterm script -qec "$SOURCE/tools/progress build true" /dev/null >"$scratch/out" </dev/null
    [ "$(tr -d '\r\033' <"$scratch/out")" = "[Kbuild: 0 s: [K" ] || fail "on a terminal: $(od -c "$scratch/out")"
fi
