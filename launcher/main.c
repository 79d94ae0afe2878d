/* main.c: mpiexec. A hidden first option makes the same program the agent on other hosts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
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

#include "remote/agent.h"
#include "boot/spawn_command.h"
#include "boot/keep.h"
#include "options/options.h"
#include "assemble.h"
#include "core/util.h"
#include "cli/number.h"

/* Supervises an mpiexec that MPI_Comm_spawn started in a program that runs without mpiexec. */

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

/* Forks: returns in the child, which continues as the mpiexec. The calling process supervises it: it ends
 * the mpiexec if the program dies before MPI_Finalize, and the program if the mpiexec fails, as a common
 * mpiexec would. */
static void supervise_mpiexec(const char *what)
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

/* Opens /dev/null for closed descriptors 0 to 2, so that no pipe gets their numbers. */
static void fill_std_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

/* Reads the command line from an inherited file, in an mpiexec that MPI_Comm_spawn started. */
static char **read_command(char **argv, int *argc)
{
    long fd = -1;
    char **words =
        number_parse_integer(argv[2], 3, 1 << 20, &fd) ? spawn_command_read((int)fd, argv[0], argc) : NULL;
    if (!words)
        launcher_die(STATUS_USAGE, COMMAND_OPTION " is for a mpiexec that MPI_Comm_spawn starts.");
    return words;
}

int main(int argc, char **argv)
{
    struct options o;
    fill_std_files();
    if (argc > 1 && strcmp(argv[1], AGENT_OPTION) == 0)
        launcher_exit(agent_main(argc, argv));
    if (argc == 2 && strcmp(argv[1], PRINT_OPTIONS_OPTION) == 0) {
        options_print_table();
        launcher_exit(0);
    }
    if (argc > 3 && strcmp(argv[1], KEEP_OPTION) == 0) {
        supervise_mpiexec(argv[2]);
        argv[2] = argv[0];
        argv += 2;
        argc -= 2;
    }
    if (argc == 3 && strcmp(argv[1], COMMAND_OPTION) == 0)
        argv = read_command(argv, &argc);
    options_parse(argc, argv, &o);
    launcher_exit(run_job(&o, argv));
}
