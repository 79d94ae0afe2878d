#!/usr/bin/env zsh
# Completes command lines in a real zsh on a pseudo-terminal, as a user who presses Tab.
#   complete.zsh FOLDER-OF-_mpiexec LINE...     prints what each line becomes
# SPDX-License-Identifier: Apache-2.0
zmodload zsh/zpty || exit 77
folder=$1
shift
zpty inner zsh -f -i
send_command() { zpty -w inner "$1" }
send_command 'unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; PS1= RPS1= TERM=dumb'
send_command "fpath=(${(q)folder} \$fpath); autoload -U compinit; compinit -u -D"
# Ctrl-X prints the line as it is and clears it.
send_command 'shown() { local line=$BUFFER; BUFFER=; print -r -- "<""<$line>"">"; zle accept-line }; zle -N shown; bindkey "^X" shown; bindkey "^I" complete-word'
send_command 'print read""y'
zpty -r -m inner out '*ready*' || exit 1
for line in "$@"; do
    zpty -n -w inner "$line"$'\t\x18'
    zpty -r -m inner out '*<<*>>*' || exit 1
    print -r -- "${${out##*<<}%%>>*}"
done
zpty -d inner
