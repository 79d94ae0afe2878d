# Conditions of a container: a tiny /dev/shm, and processes may not read each other's memory. Everything works; only large
# messages within the node are copied twice.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
command -v python3 >/dev/null || skip "python3, to refuse system calls, is not installed"

# Runs a command for which process_vm_readv, process_vm_writev and ptrace are refused, as by Docker's default rules.
cat >"$T/confine" <<'END'
import ctypes, errno, os, platform, struct, sys
calls = {"aarch64": (0xC00000B7, (270, 271, 117)), "x86_64": (0xC000003E, (310, 311, 101))}
if platform.machine() not in calls:
    sys.exit(77)
arch, refused = calls[platform.machine()]
def step(code, jt, jf, k):
    return struct.pack("HBBI", code, jt, jf, k)
rules = step(0x20, 0, 0, 4) + step(0x15, 0, len(refused) + 1, arch) + step(0x20, 0, 0, 0)
for i, number in enumerate(refused):
    rules += step(0x15, len(refused) - i, 0, number)
rules += step(0x06, 0, 0, 0x7FFF0000) + step(0x06, 0, 0, 0x00050000 | errno.EPERM)
memory = ctypes.create_string_buffer(rules)
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(rules) // 8, ctypes.addressof(memory))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
END
python3 "$T/confine" true || skip "system calls cannot be refused here"
confined="python3 $T/confine"
if [ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs -o size=64k tmpfs /dev/shm 2>/dev/null; then
    confined="unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec \"\$@\"' sh $confined"
fi

for words in "\"$MPIEXEC\" -n 4" "mpiexec.hydra -n 4"; do
    command -v "$(eval "set -- $words; echo \$1")" >/dev/null || continue
    for program in mpi_p2p_order mpi_p2p_sendrecv mpi_coll_chosen; do
        eval "run_launcher timeout 100 $confined $words \"\$MPI_TESTS/$program\""
        expect_rc 0
    done
done
# Without /proc ranks cannot share memory: the message states so.
if unshare --pid --fork --mount mount -t tmpfs tmpfs /proc 2>/dev/null; then
    run_launcher unshare --pid --fork --mount sh -c 'mount -t tmpfs tmpfs /proc && exec "$@"' sh "$MPIEXEC" -n 2 "$MPI_TESTS/mpi_p2p_order"
    expect_rc 55
    expect_err "share memory through /proc, which is not mounted here"
fi
# A service name that a process of another pid namespace has published is found: the library does not conclude from the unknown pid
# that the process has ended.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    export FISHPLATE_NAME_DIR="$T/names"
    mkfifo "$T/published"
    exec 4<>"$T/published"
    unshare --pid --fork --mount-proc "$MPIEXEC" -timeout 60 -n 1 "$SPAWNER" serve "$$" >"$T/published" 2>/dev/null 4>&- &
    read -r line <&4
    run_mpiexec -timeout 60 -n 1 "$SPAWNER" guess "$$"
    expect_rc 0
    expect_out refused
    run_mpiexec -timeout 60 -n 1 "$SPAWNER" ask "$$" # the other process's memory cannot be opened: both sides report an error and end
    wait
    exec 4<&-
fi
eval "run_launcher timeout 100 $confined \"$MPIEXEC\" -n 2 -genv FISHPLATE_STATS 1 \"$MPI_TESTS/mpi_p2p_sendrecv\""
! grep -q shm_cma_bytes "$T/err" || fail "$last: memory of other processes was read all the same"
finish_test
