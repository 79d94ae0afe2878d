#!/bin/sh
# man.sh: every program has a manual page that describes each option its help lists, and that groff formats without a warning.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
pages=$BIN/../share/man/man1

# check_page PAGE PROGRAM ARGUMENTS...: the words that begin with a dash at the beginning of a line of the help.
check_page() {
    page=$pages/$1.1
    shift
    [ -s "$page" ] || fail "there is no $page"
    "$@" >"$scratch/help" || fail "$* failed"
    sed -n 's/^ *\(\* \)\{0,1\}\(--\{0,1\}[a-zA-Z][-a-zA-Z_]*\).*/\2/p' "$scratch/help" | sort -u >"$scratch/options"
    while read -r option; do
        grep -qF -- "$(printf '%s' "$option" | sed 's/-/\\-/g')" "$page" || fail "$page does not tell of $option"
    done <"$scratch/options"
    if command -v groff >/dev/null 2>&1; then
        groff -man -Tascii -ww "$page" 2>"$scratch/words" >"$scratch/text" || fail "groff failed on $page"
        [ ! -s "$scratch/words" ] || fail "groff reports on $page: $(cat "$scratch/words")"
    fi
}

[ -d "$pages" ] || { echo "built for another kind of machine: no manual pages" && exit 77; }
check_page mpicc "$BIN/mpicc" -help
[ "$(wc -l <"$scratch/options")" -ge 6 ] || fail "the help of mpicc lists fewer options than it has"
for command in info bench prof ps why check tune; do
    check_page fishplate "$BIN/fishplate" $command --help
done
if [ -x "$BIN/fishplate-lab" ]; then
    for command in papers sim ib rails bcast barrier kernels; do
        check_page fishplate-lab "$BIN/fishplate-lab" $command --help
    done
fi
[ ! -x "$BIN/softib" ] || check_page softib "$BIN/softib" --help
