/* patience.c: rank 1 is stopped inside MPI_Finalize (kill point ib_finishing,
 * FISHPLATE_KILL_AT=ib_finishing:1:1:stop). Rank 0 must not leave MPI_Finalize before rank 1 has been
 * continued, whatever its clock shows: in MPI_Finalize each reading of the clock by rank 0's main thread
 * inside the library advances the clock by one second. Rank 0 continues rank 1 after READS readings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { READS = 2000, BYTES = 3000 };

static pthread_t main_thread;
/* fast: not 0 while the clock advances by 1 s per reading; reads: number of these readings */
static int fast, reads;
static pid_t peer;

static int is_in_library(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libmpi_abi");
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    const int rc = (int)syscall(SYS_clock_gettime, which, out);
    if (!fast || !pthread_equal(pthread_self(), main_thread) || !is_in_library(__builtin_return_address(0)))
        return rc;
    out->tv_sec += ++reads;
    if (reads == READS)
        kill(peer, SIGCONT);
    return rc;
}

int main(int argc, char **argv)
{
    static char out[BYTES], in[BYTES];
    int rank, mine = (int)getpid(), other;
    MPI_Init(&argc, &argv);
    main_thread = pthread_self();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, 0, &other, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    peer = (pid_t)other;
    memset(out, 7, sizeof(out));
    MPI_Sendrecv(out, BYTES, MPI_BYTE, 1 - rank, 1, in, BYTES, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    fast = rank == 0;
    MPI_Finalize();
    fast = 0;
    if (rank == 0 && reads < READS) {
        printf("rank 0 left MPI_Finalize after %d s of its clock while rank 1 was stopped\n", reads);
        fflush(stdout);
        kill(peer, SIGCONT);
        return 1;
    }
    printf("rank %d finished\n", rank);
    return memcmp(in, out, BYTES) != 0;
}
