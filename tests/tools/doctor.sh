#!/bin/sh
# `fishplate why` and `fishplate ps` on programs that hang: doctor.sh BIN NAME flags=FLAG [mpiexec options]
# SPDX-License-Identifier: Apache-2.0
set -eu
bin=$1
name=$2
flags=${3#flags=}
shift 3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=zoo
[ ! -e "$here/doctor/$name.c" ] || program=$name
"$bin/mpicc" -g -O1 ${flags:+"$flags"} "$here/doctor/$program.c" -o "$work/$program"
python3 "$here/doctor/$name.py" "$bin" "$work/$program" "$@"
