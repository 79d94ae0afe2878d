/* singleton_spawn.c: see singleton_spawn.h. The mpiexec lies beside this library. It is the child of a keeper, a fork of this
 * process that is nobody's child, so that the program's own wait calls see neither. The keeper ends the mpiexec when the program
 * dies before MPI_Finalize, and the program when the mpiexec fails, as one mpiexec for all would do. The parents' port goes by
 * the environment and not by arguments, which every user of the machine can read: who knows the name of a port may connect.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/singleton_spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "boot/backend.h"
#include "boot/heir.h"
#include "boot/launch_env.h"
#include "boot/program.h"

/* ---- its command line ---- */

struct words {
    char **v;
    size_t n;
    bool failed; /* for want of memory */
};

/* Takes the word, which may be NULL for want of memory. */
static void take(struct words *w, char *word)
{
    char **more = realloc(w->v, (w->n + 2) * sizeof(*more));
    if (more)
        w->v = more;
    if (!more || !word) {
        free(word);
        w->failed = true;
        return;
    }
    w->v[w->n++] = word;
    w->v[w->n] = NULL;
}

static void add(struct words *w, const char *word)
{
    take(w, strdup(word));
}

static void add_option(struct words *w, const char *name, const char *value)
{
    if (value) {
        add(w, name);
        add(w, value);
    }
}

static void words_free(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->v[i]);
    free(w->v);
}

/* The info key env has one variable a line. */
static void add_variables(struct words *w, const char *lines)
{
    while (lines && *lines) {
        size_t len = strcspn(lines, "\n");
        if (len > 0) {
            add(w, "-env");
            take(w, strndup(lines, len));
        }
        lines += len + (lines[len] == '\n');
    }
}

static int add_program(struct words *w, const struct boot_program *program)
{
    char count[16];
    const char *host = program_info(program, "host");
    snprintf(count, sizeof(count), "%d", program->count);
    add_option(w, "-n", count);
    add_option(w, "-host",
               host ? host : "localhost"); /* not those of a batch system: a single process shares memory */
    add_option(w, "-wdir", program_info(program, "wdir"));
    add_variables(w, program_info(program, "env"));
    take(w, program_command(program));
    for (char *const *arg = program->argv; arg && *arg; arg++) {
        if (strcmp(*arg, ":") == 0)
            return err_set(MPI_ERR_SPAWN,
                           "An argument of %s is \":\", which mpiexec takes for the beginning of another "
                           "program. Start this program with mpiexec, too.",
                           program->command);
        add(w, *arg);
    }
    return 0;
}

/* In a build folder and in an installation, also where libraries have a folder for each architecture. */
static const char *const beside[] = {"../bin/mpiexec", "../../bin/mpiexec"};

static int find_mpiexec(struct words *w)
{
    Dl_info me;
    const char *slash = NULL;
    if (dladdr((void *)(uintptr_t)singleton_spawn_start, &me) && me.dli_fname)
        slash = strrchr(me.dli_fname, '/');
    for (size_t i = 0; slash && i < COUNT_OF(beside); i++) {
        char *at = NULL;
        if (asprintf(&at, "%.*s/%s", (int)(slash - me.dli_fname), me.dli_fname, beside[i]) < 0)
            break;
        if (access(at, X_OK) == 0) {
            take(w, at);
            return 0;
        }
        free(at);
    }
    return err_set(MPI_ERR_SPAWN,
                   "Processes cannot be spawned here: this program was started without a launcher, and there "
                   "is no mpiexec beside the library (%s). Start the program with Fishplate's mpiexec.",
                   slash ? me.dli_fname : "not found");
}

/* ---- its keeper ---- */

#define SPAWNS_KNOWN 256

enum { COMING, MET, ENDED };

struct singleton_book {
    atomic_int finished;
    atomic_uchar state[SPAWNS_KNOWN];
};

static atomic_uchar *state_of(const struct singleton_spawn *s, unsigned id)
{
    return &s->book->state[id % SPAWNS_KNOWN];
}

static int watch_of(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

/* From here to the end of keep: between fork and exec, and in a fork of what may have had threads. Nothing that allocates or
 * locks. */
_Noreturn static void become(char *const *argv, char *const *envp)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO); /* the program's input is not theirs */
    heir_close_from(STDERR_FILENO + 1);
    execve(argv[0], argv, envp);
    _exit(127);
}

/* True: the mpiexec has ended; false: the program has. Without pidfds only the mpiexec is watched. */
static bool wait_for_either(int program, int mpiexec)
{
    struct pollfd p[] = {{.fd = mpiexec, .events = POLLIN}, {.fd = program, .events = POLLIN}};
    if (mpiexec < 0)
        return true; /* the caller waits for it */
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    return p[0].revents != 0;
}

static int status_of(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Descriptors above standard error that a keeper has. */
enum { PROGRAM_FD = 3, MPIEXEC_FD = 4, FIRST_CLOSED = 5 };

static void keep_files(int program, int mpiexec)
{
    int a = program >= 0 ? fcntl(program, F_DUPFD, FIRST_CLOSED) : -1;
    int b = mpiexec >= 0 ? fcntl(mpiexec, F_DUPFD, FIRST_CLOSED) : -1;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(PROGRAM_FD);
    close(MPIEXEC_FD);
    if (a >= 0)
        dup2(a, PROGRAM_FD);
    if (b >= 0)
        dup2(b, MPIEXEC_FD);
    heir_close_from(FIRST_CLOSED);
}

/* Not another process that has its number by now. */
static void end(pid_t program, int program_fd)
{
#ifdef SYS_pidfd_send_signal
    if (program_fd >= 0 && syscall(SYS_pidfd_send_signal, program_fd, SIGTERM, NULL, 0) == 0)
        return;
#endif
    if (program_fd < 0)
        kill(program, SIGTERM);
}

_Noreturn static void keep(struct singleton_book *book, atomic_uchar *state, pid_t program, int program_fd,
                           pid_t mpiexec)
{
    static const char sentence[] =
        "fishplate: Processes that were spawned have failed; the program that spawned them is ended.\n";
    int mpiexec_fd = watch_of(mpiexec);
    prctl(PR_SET_NAME, "fishplate-keep");
    keep_files(program_fd, mpiexec_fd);
    if (!wait_for_either(program_fd < 0 ? -1 : PROGRAM_FD, mpiexec_fd < 0 ? -1 : MPIEXEC_FD)) {
        if (!atomic_load(&book->finished)) {
            kill(mpiexec, SIGTERM);
            status_of(mpiexec);
        }
        _exit(0);
    }
    int status = status_of(mpiexec);
    if (atomic_exchange(state, ENDED) == MET && status != 0 && !atomic_load(&book->finished)) {
        ssize_t n = write(STDERR_FILENO, sentence, sizeof(sentence) - 1);
        (void)n;
        end(program, program_fd < 0 ? -1 : PROGRAM_FD);
    }
    _exit(0);
}

static bool start(struct singleton_book *book, atomic_uchar *state, char *const *argv, char *const *envp)
{
    pid_t program = getpid(), child = fork();
    if (child == 0) {
        int program_fd = watch_of(program); /* now: it waits for this process */
        pid_t keeper = fork();
        if (keeper == 0) {
            heir_default_signals();
            pid_t mpiexec = fork();
            if (mpiexec == 0)
                become(argv, envp);
            if (mpiexec < 0) {
                atomic_store(state, ENDED);
                _exit(1);
            }
            for (const int *sig = (const int[]){SIGINT, SIGQUIT, SIGHUP, SIGTERM, 0}; *sig; sig++)
                signal(*sig, SIG_IGN); /* the mpiexec has them as well, and ends */
            keep(book, state, program, program_fd, mpiexec);
        }
        _exit(keeper < 0);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && status == 0;
}

/* ---- for the back end ---- */

static int open_book(struct singleton_spawn *s)
{
    if (s->book)
        return 0;
    void *book = mmap(NULL, sizeof(*s->book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (book == MAP_FAILED)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for what becomes of spawned processes.");
    s->book = book;
    return 0;
}

int singleton_spawn_start(struct singleton_spawn *s, const struct boot_program *programs, int n,
                          const char *port, char id[BOOT_SPAWN_ID])
{
    struct words command = {0}, env = {0};
    char *parent = NULL;
    int rc = find_mpiexec(&command);
    for (int i = 0; i < n && !rc; i++) {
        if (i > 0)
            add(&command, ":");
        rc = add_program(&command, &programs[i]);
    }
    for (char **at = environ; at && *at; at++)
        add(&env, *at);
    take(&env, asprintf(&parent, ENV_PARENT "=%s", port) < 0 ? NULL : parent);
    if (!rc && (command.failed || env.failed))
        rc = err_set(MPI_ERR_NO_MEM, "Out of memory for the command that spawns %d programs.", n);
    rc = rc ? rc : open_book(s);
    if (!rc) {
        snprintf(id, BOOT_SPAWN_ID, "%u", ++s->count);
        atomic_store(state_of(s, s->count), COMING);
        if (!start(s->book, state_of(s, s->count), command.v, env.v))
            rc = err_set(MPI_ERR_SPAWN, "Cannot fork to start %s (see `ulimit -u`).", command.v[0]);
    }
    words_free(&command);
    words_free(&env);
    return rc;
}

static unsigned number_of(const char *id)
{
    return (unsigned)strtoul(id, NULL, 10);
}

int singleton_spawn_look(const struct singleton_spawn *s, const char *id)
{
    if (atomic_load(state_of(s, number_of(id))) != ENDED)
        return 0;
    return err_set(MPI_ERR_SPAWN,
                   "The mpiexec that was to start the new processes has ended; it has said why.");
}

void singleton_spawn_met(const struct singleton_spawn *s, const char *id)
{
    unsigned char coming = COMING;
    atomic_compare_exchange_strong(state_of(s, number_of(id)), &coming, MET);
}

void singleton_spawn_finish(const struct singleton_spawn *s)
{
    if (s->book)
        atomic_store(&s->book->finished, 1);
}

void singleton_spawn_close(struct singleton_spawn *s)
{
    if (s->book)
        munmap(s->book, sizeof(*s->book));
    s->book = NULL;
}
