# Options of other launchers: options with an equivalent work, others print one line that names the equivalent of this launcher;
# programs and variables of other MPI libraries are detected.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_local_shell
for name in $(env | sed -n 's/^\(\(UCX\|OMPI_MCA\|MV2\|MPIR_CVAR\|I_MPI\|HYDRA\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

# Options with an equivalent.
hosts="-launcher-exec $T/shell -hosts a:4,b:4"
run_mpiexec $hosts -N 1 -n 2 -prepend-pattern '<%r of %h> ' echo text
expect_out "<0 of a> text" "<1 of b> text"
expect_no_err
run_mpiexec $hosts -pernode -n 2 -l sh -c 'echo $FISHPLATE_HOST'
expect_out "[0] a" "[1] b"
# Two ranks per host, numbered host by host or in turn, for every mapping.
run_mpiexec $hosts -n 4 --map-by ppr:2:node --rank-by node -l sh -c 'echo $FISHPLATE_HOST'
expect_out "[0] a" "[1] b" "[2] a" "[3] b"
run_mpiexec $hosts -n 5 --map-by node --rank-by slot -l sh -c 'echo $FISHPLATE_HOST'
expect_out "[0] a" "[1] a" "[2] a" "[3] b" "[4] b"
# Two cores per rank: a host with four slots gets two ranks, each bound to two cores if there are enough.
run_mpiexec $hosts --map-by slot:PE=2 -l sh -c 'echo $FISHPLATE_HOST $(nproc)'
cores=$(nproc)
[ "$cores" -lt 2 ] || cores=2
[ "$(lscpu 2>/dev/null | sed -n 's/^Thread(s) per core: *//p')" != 1 ] ||
    expect_out "[0] a $cores" "[1] a $cores" "[2] b $cores" "[3] b $cores"
run_mpiexec -n 2 --report-bindings true
expect_err "Rank 1: node 0, local rank 1 of 2, processors:"
run_mpiexec -n 2 --display-map true
expect_err "Rank 0: node 0"
run_mpiexec -n 3 -print-all-exitcodes "$CLIENT" late 1 6
expect_rc 6
expect_err "Exit status 0: ranks 0, 2 on host"
expect_err "Exit status 6: rank 1 on host"
run_mpiexec -n 2 --output-filename "$T/o" sh -c 'echo out $PMI_RANK; echo err $PMI_RANK >&2'
[ "$(cat "$T/o.1.out" "$T/o.0.err")" = "out 1
err 0" ] || fail "$last: the files are wrong"
expect_err "outfile-pattern"
mkfifo "$T/go"
run_mpiexec -n 2 -disable-auto-cleanup sh -c "if [ \$PMI_RANK = 0 ]; then exec <'$T/go'; read -r _; echo went on; else echo >'$T/go'; exit 3; fi"
expect_rc 3
expect_out "went on"
expect_err "exited with status 3."
run_mpiexec -bootstrap ssh -bootstrap-exec "$T/shell" -hosts a -n 1 echo text
expect_out text
A=1 run_mpiexec -x A -x B='two words' -n 1 sh -c 'echo $A $B'
expect_out "1 two words"
run_mpiexec --mca plm_rsh_agent "$T/shell" -hosts a -n 1 echo text
expect_out text
# A value after an equals sign is passed unchanged.
run_mpiexec --outfile-pattern="$T/equals.%r" --timeout=100 -n 1 echo text
[ "$(cat "$T/equals.0")" = text ] || fail "$last: the file is wrong"

# Options without an equivalent: one line reports it, and the job runs.
expect_one_line() {
    wanted=$1
    shift
    run_mpiexec "$@" -n 1 echo text
    expect_rc 0
    expect_out text
    expect_err "$wanted"
    [ "$(wc -l <"$T/err")" -eq 1 ] || fail "$last: one line was expected"
}
expect_one_line "use FISHPLATE_VERBS and FISHPLATE_REQUIRE" --mca btl self,vader
expect_one_line "use FISHPLATE_IB_DEVICES" --mca btl_tcp_if_include eth0
expect_one_line "use FISHPLATE_COLL" --mca coll_tuned_use_dynamic_rules 1
expect_one_line "fishplate info lists" --mca something else
expect_one_line "same path on all hosts" --prefix /opt/openmpi
run_mpiexec --display map,bind -n 1 true
expect_rc 0
expect_err "Rank 0: node 0"
run_mpiexec --display-allocation -n 1 true
expect_rc 0
expect_err "-display-allocation has no effect here: -show-map"
for name in --quiet --allow-run-as-root; do
    run_mpiexec $name -n 1 true
    expect_no_err
done

# Variables of other launchers.
UCX_NET_DEVICES=mlx5_0:1 run_mpiexec -n 1 true
expect_rc 0
expect_err "Note: a variable of other MPI libraries is set and has no effect here: UCX_NET_DEVICES (here FISHPLATE_IB_DEVICES)."
MV2_IBA_HCA=mlx5_0 OMPI_MCA_coll_x=1 run_mpiexec -n 1 true
expect_err "MV2_IBA_HCA (here FISHPLATE_IB_DEVICES)"
expect_err "OMPI_MCA_coll_x (here FISHPLATE_COLL)"
[ "$(wc -l <"$T/err")" -eq 1 ] || fail "$last: one line was expected"
MPICH_GPU_SUPPORT_ENABLED=1 OMPI_MCA_opal_cuda_support=1 run_mpiexec -n 1 true
expect_err "OMPI_MCA_opal_cuda_support (here FISHPLATE_GPU; GPU memory is accepted by default)"
# Variables without an equivalent are not mentioned.
MV2_SOMETHING=1 OMPI_MCA_x=1 UCX_X=1 MPIR_CVAR_X=1 run_mpiexec -n 1 true
expect_no_err

# Programs of other MPI libraries, detected by the library that they need.
if command -v cc >/dev/null; then
    echo 'int MPI_Init(void) { return 0; }' >"$T/lib.c"
    echo 'int MPI_Init(void); int main(void) { return MPI_Init(); }' >"$T/main.c"
    for soname in libmpi.so.40 libmpich.so.12; do
        cc -shared -fPIC -Wl,-soname,$soname -o "$T/$soname" "$T/lib.c" &&
            cc -o "$T/with-$soname" "$T/main.c" "$T/$soname" -Wl,-rpath,"$T" || fail "the program of another MPI was not made"
    done
    run_mpiexec -n 3 "$T/with-libmpi.so.40"
    expect_rc 0
    expect_err "is linked with Open MPI (libmpi.so.40)"
    expect_err "each of the 3 ranks will run as a job of one rank"
    run_mpiexec -n 1 "$T/with-libmpi.so.40"
    expect_no_err
    run_mpiexec -n 2 "$T/with-libmpich.so.12"
    expect_rc 0
    expect_err "No rank contacted this mpiexec"
    expect_err "MPICH (libmpich.so.12)"
fi

# A debugger for all ranks, or for one.
if command -v gdb >/dev/null && gdb -q -batch -ex run --args true 2>&1 | grep -q 'exited normally'; then
    run_mpiexec -gdb -n 2 "$CLIENT" exchange
    expect_rc 0
    [ "$(grep -c '^exchange ok' "$T/out")" -eq 2 ] || fail "$last: the ranks did not run"
    run_mpiexec -gdb -n 2 "$CLIENT" crash 1
    [ $rc -ne 0 ] || fail "$last: a crash went unnoticed"
    grep -q 'main (argc=' "$T/out" || fail "$last: no backtrace"
    if grep -q 'Traceback\|KeyboardInterrupt' "$T/err"; then
        cat "$T/err"
        fail "$last: a debugger of another rank prints its own traceback"
    fi
    last="commands for gdb of one rank"
    printf 'run\nprint 40 + 2\nquit\n' | "$MPIEXEC" -l -gdb=1 -n 2 "$CLIENT" exchange >"$T/out" 2>"$T/err"
    grep -q '^\[1\].* = 42' "$T/out" || fail "$last: they were not obeyed"
    grep -q '^\[0\] exchange ok' "$T/out" || fail "$last: rank 0 did not run"
    run_mpiexec -gdb=7 -n 2 true
    expect_rc 2
fi
run_mpiexec -xterm 0,9 -n 2 true
expect_rc 2
run_mpiexec -xterm x -n 2 true
expect_rc 2
expect_err "such as 0,3-5"

# Completion, made from the table of options.
last="tools/options-to-texts"
"$TESTS/../../tools/options-to-texts" 1.0 "$T" "$MPIEXEC" || fail "exit status $?"
if command -v bash >/dev/null; then
    mv "$T/mpiexec.bash" "$T/completion"
    complete_words() {
        bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fishplate_mpiexec; echo "${COMPREPLY[@]}"' \
            "$T/completion" "$@" >"$T/out" 2>"$T/err"
        last="completing $*"
        expect_no_err
    }
    complete_words mpiexec -bind
    expect_out "-bind-to"
    complete_words mpiexec --outf
    expect_out "--outfile-pattern"
    complete_words mpiexec -n 2 -bind-to s
    expect_out "socket"
    complete_words mpiexec -n 2 -wdir "$T/comple"
    expect_out ""
    complete_words mpiexec -n 2 cat "$T/comple"
    expect_out "$T/completion"
fi
if command -v zsh >/dev/null; then
    last="the completion for zsh"
    mv "$T/mpiexec.zsh" "$T/_mpiexec"
    printf '#!/bin/sh\n' >"$T/program-of-mine"
    chmod +x "$T/program-of-mine"
    timeout 60 zsh -f "$(dirname "$0")/complete.zsh" "$T" "mpiexec -bind-t" "mpiexec -bind-to so" "mpirun -n 2 -launcher sl" \
        "mpiexec -n 2 $T/program-of" "mpiexec -n 2 cat $T/comple" >"$T/out" 2>"$T/err"
    rc=$?
    if [ $rc -ne 77 ]; then # no pseudo-terminals
        expect_rc 0
        sed -i 's/ *$//' "$T/out"
        expect_out "mpiexec -bind-to
mpiexec -bind-to socket
mpirun -n 2 -launcher slurm
mpiexec -n 2 $T/program-of-mine
mpiexec -n 2 cat $T/completion"
    fi
fi
last="the manual page"
[ "$(grep -c '^\.TP' "$T/mpiexec.man")" -gt 30 ] || fail "the manual page lacks options"
if command -v groff >/dev/null; then
    groff -man -Tascii -ww "$T/mpiexec.man" >/dev/null 2>"$T/err"
    expect_no_err
fi
finish_test
