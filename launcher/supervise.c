/* supervise.c: see supervise.h. The supervisor is not a fork of the program: a fork would keep a copy of all
 * memory that the program changes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/keep.h"
#include "core/util.h"

/* Waits; true if the mpiexec ended first, false if the program did. Without pidfds returns true at once. */
static bool wait_mpiexec_or_program(int program, int mpiexec)
{
    struct pollfd p[] = {{.fd = mpiexec, .events = POLLIN}, {.fd = program, .events = POLLIN}};
    if (mpiexec < 0)
        return true; /* the caller calls waitpid for the mpiexec */
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    return p[0].revents != 0;
}

static int supervise_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Uses a pidfd if available: the process number may belong to another process by now. */
static void end_program(pid_t program, int program_fd)
{
    message_print("Processes that were spawned have failed; the program that spawned them is ended.");
#ifdef SYS_pidfd_send_signal
    if (program_fd >= 0) {
        syscall(SYS_pidfd_send_signal, program_fd, SIGTERM, NULL, 0);
        return;
    }
#endif
    kill(program, SIGTERM);
}

_Noreturn static void supervise_until_end(struct spawn_state_table *book, atomic_uchar *state, pid_t program,
                                          pid_t mpiexec)
{
    /* The mpiexec receives these signals too, and ends the job. */
    static const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM};
    const int program_fd = fcntl(KEEP_PROGRAM_FD, F_GETFD) >= 0 ? KEEP_PROGRAM_FD : -1;
    for (size_t i = 0; i < COUNT_OF(ignored); i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_NAME, "fishplate-keep");
    close(STDOUT_FILENO); /* a reader of mpiexec's output waits until all writers have closed it */
    if (!wait_mpiexec_or_program(program_fd, open_process_pidfd(mpiexec))) {
        if (!atomic_load(&book->finished)) {
            kill(mpiexec, SIGTERM);
            supervise_wait(mpiexec);
        }
        _exit(0);
    }
    const int status = supervise_wait(mpiexec);
    if (atomic_exchange(state, KEEP_ENDED) == KEEP_CONNECTED && status != 0 && !atomic_load(&book->finished))
        end_program(program, program_fd);
    _exit(0);
}

static struct spawn_state_table *map_spawn_record(void)
{
    struct stat s;
    if (fstat(KEEP_BOOK_FD, &s) != 0 || s.st_size != sizeof(struct spawn_state_table))
        return NULL;
    void *book =
        mmap(NULL, sizeof(struct spawn_state_table), PROT_READ | PROT_WRITE, MAP_SHARED, KEEP_BOOK_FD, 0);
    close(KEEP_BOOK_FD);
    return book == MAP_FAILED ? NULL : book;
}

void supervise_mpiexec(const char *what)
{
    int program;
    unsigned spawn;
    struct spawn_state_table *book = map_spawn_record();
    if (!book || sscanf(what, "%d:%u", &program, &spawn) != 2 || program <= 0)
        launcher_die(STATUS_USAGE,
                     KEEP_OPTION " is for MPI_Comm_spawn in a program that was started without mpiexec.");
    atomic_uchar *state = &book->state[spawn % KEEP_SPAWNS];
    const pid_t mpiexec = fork();
    if (mpiexec < 0) {
        atomic_store(state, KEEP_ENDED);
        launcher_die(STATUS_USAGE, "Cannot fork to start spawned processes: %s (see `ulimit -u`).",
                     strerror(errno));
    }
    if (mpiexec > 0)
        supervise_until_end(book, state, program, mpiexec);
    munmap(book, sizeof(*book));
    close(KEEP_PROGRAM_FD);
}
