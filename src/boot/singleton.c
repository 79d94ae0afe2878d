/* singleton.c: the back end of a process without a launcher: a job of one rank. Values that the rank
 * publishes are stored in a list.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mapping.h"
#include "base/util.h"
#include "boot/boot.h"
#include "base/err.h"
#include "boot/backend.h"
#include "boot/spawn_command.h"
#include "boot/death_watcher.h"
#include "boot/keep.h"
#include "boot/launch_env.h"
#include "boot/program.h"

/* MPI_Comm_spawn in a process without a launcher: the mpiexec beside the library starts the new processes. */

struct singleton_spawn {
    unsigned count;         /* spawns so far: the id of the last one */
    struct mapping mapping; /* mapping of struct spawn_state_table; opened by the first spawn */
};

struct singleton {
    struct boot boot;
    struct singleton_spawn spawned;
    struct entry *entries; /* values that this rank has published */
};

static inline struct singleton *singleton_of(struct boot *b)
{
    return container_of(b, struct singleton, boot);
}

/* ---- its command line ---- */

struct words {
    char **v;
    size_t n;
    bool failed; /* an allocation failed */
};

/* Appends an allocated word and owns it; NULL records that memory ran out. */
static void words_append_owned(struct words *w, char *word)
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

static void words_append_copy(struct words *w, const char *word)
{
    words_append_owned(w, strdup(word));
}

static void add_option(struct words *w, const char *name, const char *value)
{
    if (value) {
        words_append_copy(w, name);
        words_append_copy(w, value);
    }
}

static void words_free(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->v[i]);
    free(w->v);
}

/* Appends `-env` options for the info key env, which has one variable per line. */
static void add_variables(struct words *w, const char *lines)
{
    while (lines && *lines) {
        size_t len = strcspn(lines, "\n");
        if (len > 0) {
            words_append_copy(w, "-env");
            words_append_owned(w, strndup(lines, len));
        }
        lines += len + (lines[len] == '\n');
    }
}

static int add_program(struct words *w, const struct boot_program *program)
{
    char count[16];
    const char *host = program_get_info(program, "host");
    snprintf(count, sizeof(count), "%d", program->count);
    add_option(w, "-n", count);
    /* Without the info key host, mpiexec must not use the hosts of a batch system. */
    add_option(w, "-host", host ? host : "localhost");
    add_option(w, "-wdir", program_get_info(program, "wdir"));
    add_variables(w, program_get_info(program, "env"));
    words_append_owned(w, program_find_command(program));
    for (char *const *arg = program->argv; arg && *arg; arg++) {
        if (strcmp(*arg, ":") == 0)
            return err_set(MPI_ERR_SPAWN,
                           "An argument of %s is \":\", which mpiexec takes for the beginning of another "
                           "program. Start this program with mpiexec, too.",
                           program->command);
        words_append_copy(w, *arg);
    }
    return 0;
}

/* Paths of mpiexec from the folder of the library, in a build folder and in installations. */
static const char *const mpiexec_paths[] = {"../bin/mpiexec", "../../bin/mpiexec"};

/* Finds mpiexec; the caller frees *path. */
static int find_mpiexec(char **path)
{
    Dl_info me;
    const char *slash = NULL;
    if (dladdr((void *)(uintptr_t)find_mpiexec, &me) && me.dli_fname)
        slash = strrchr(me.dli_fname, '/');
    for (size_t i = 0; slash && i < COUNT_OF(mpiexec_paths); i++) {
        char *at = NULL;
        if (asprintf(&at, "%.*s/%s", (int)(slash - me.dli_fname), me.dli_fname, mpiexec_paths[i]) < 0)
            break;
        if (access(at, X_OK) == 0) {
            *path = at;
            return 0;
        }
        free(at);
    }
    return err_set(MPI_ERR_SPAWN,
                   "Processes cannot be spawned here: this program was started without a launcher, and there "
                   "is no mpiexec beside the library (%s). Start the program with Fishplate's mpiexec.",
                   slash ? me.dli_fname : "not found");
}

/* ---- its start ---- */

static atomic_uchar *spawn_state(const struct singleton_spawn *s, unsigned id)
{
    struct spawn_state_table *book = s->mapping.at;
    return &book->state[id % KEEP_SPAWNS];
}

/* The command line, environment and descriptors with which mpiexec is started. */
struct start {
    char *const *argv, *const *envp;
    int command;         /* descriptor of the file with mpiexec's command line (spawn_command.h) */
    int book;            /* descriptor of struct spawn_state_table */
    atomic_uchar *state; /* state of this spawn in the book */
};

/* Moves the given files to descriptors 3 and up; -1 closes that number. Runs between fork and exec of a
 * program that may have threads, so it must not allocate or take locks. */
static void child_place_descriptors(const int *files, int n)
{
    int above[KEEP_COMMAND_FD + 1];
    for (int i = 0; i < n; i++)
        above[i] = files[i] >= 0 ? fcntl(files[i], F_DUPFD, KEEP_COMMAND_FD + 1) : -1;
    for (int i = 0; i < n; i++) {
        close(KEEP_PROGRAM_FD + i);
        if (above[i] >= 0)
            dup2(above[i], KEEP_PROGRAM_FD + i);
    }
    child_close_files(KEEP_COMMAND_FD + 1);
}

_Noreturn static void exec_mpiexec(const struct start *s, int program)
{
    const int files[] = {
        [KEEP_PROGRAM_FD - 3] = program, [KEEP_BOOK_FD - 3] = s->book, [KEEP_COMMAND_FD - 3] = s->command};
    const int nothing = open("/dev/null", O_RDONLY);
    child_default_signals();
    signal(SIGPIPE, SIG_DFL);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO); /* spawned processes do not read the program's input */
    child_place_descriptors(files, COUNT_OF(files));
    execve(s->argv[0], s->argv, s->envp);
    atomic_store(s->state, KEEP_ENDED);
    _exit(127);
}

static bool start_mpiexec(const struct start *s)
{
    pid_t program = getpid(), child = fork();
    if (child == 0) {
        /* opened while the program waits for this process, so its id is valid */
        int program_fd = open_process_pidfd(program);
        pid_t mpiexec = fork();
        if (mpiexec == 0)
            exec_mpiexec(s, program_fd);
        _exit(mpiexec < 0);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && status == 0;
}

/* ---- for the back end ---- */

static int singleton_map_spawn_states(struct singleton_spawn *s)
{
    return s->mapping.at || mapping_open(&s->mapping, "fishplate-spawns", sizeof(struct spawn_state_table))
               ? 0
               : err_set(MPI_ERR_NO_MEM, "Out of memory or files for the states of spawned jobs.");
}

/* Writes the words of the command line to a file, with descriptor *fd. */
static int write_command(const struct boot_program *programs, int n, int *fd)
{
    struct words words = {0};
    int rc = 0;
    for (int i = 0; i < n && !rc; i++) {
        if (i > 0)
            words_append_copy(&words, ":");
        rc = add_program(&words, &programs[i]);
    }
    *fd = rc || words.failed ? -1 : spawn_command_write(words.v);
    if (!rc && *fd < 0)
        rc = err_set(MPI_ERR_NO_MEM, "Out of memory or files for the command that spawns %d programs.", n);
    words_free(&words);
    return rc;
}

static int run_mpiexec(struct singleton_spawn *s, char *path, const char *port, int command)
{
    struct words env = {0};
    char kept[40], file[16], *parent = NULL;
    const unsigned count = s->count + 1;
    snprintf(kept, sizeof(kept), "%d:%u", getpid(), count);
    snprintf(file, sizeof(file), "%d", KEEP_COMMAND_FD);
    for (char **at = environ; at && *at; at++)
        words_append_copy(&env, *at);
    words_append_owned(&env, asprintf(&parent, ENV_PARENT "=%s", port) < 0 ? NULL : parent);
    int rc =
        env.failed ? err_set(MPI_ERR_NO_MEM, "Out of memory for the environment of spawned processes.") : 0;
    if (!rc) {
        const struct start start = {
            .argv = (char *[]){path, (char *)KEEP_OPTION, kept, (char *)COMMAND_OPTION, file, NULL},
            .envp = env.v,
            .command = command,
            .book = s->mapping.file,
            .state = spawn_state(s, count)};
        s->count = count;
        atomic_store(start.state, KEEP_STARTING);
        if (!start_mpiexec(&start))
            rc = err_set(MPI_ERR_SPAWN, "Cannot fork to start %s (see `ulimit -u`).", path);
    }
    words_free(&env);
    return rc;
}

/* Functions of the back end (backend.h). */
static int singleton_spawn_start(struct boot *b, const struct boot_program *programs, int n, const char *port,
                                 char id[BOOT_SPAWN_ID])
{
    struct singleton_spawn *s = &singleton_of(b)->spawned;
    char *path = NULL;
    int command = -1;
    int rc = find_mpiexec(&path);
    rc = rc ? rc : write_command(programs, n, &command);
    rc = rc ? rc : singleton_map_spawn_states(s);
    rc = rc ? rc : run_mpiexec(s, path, port, command);
    if (!rc)
        snprintf(id, BOOT_SPAWN_ID, "%u", s->count);
    if (command >= 0)
        close(command);
    free(path);
    return rc;
}

static atomic_uchar *find_spawn_state(struct boot *b, const char *id)
{
    return spawn_state(&singleton_of(b)->spawned, (unsigned)strtoul(id, NULL, 10));
}

static int singleton_spawn_poll(struct boot *b, const char *id)
{
    if (atomic_load(find_spawn_state(b, id)) != KEEP_ENDED)
        return 0;
    return err_set(MPI_ERR_SPAWN,
                   "The mpiexec that was to start the new processes has ended; it has printed the reason.");
}

/* The spawned processes are connected: from now on a failure of this process ends them, and the reverse. */
static void singleton_spawn_connected(struct boot *b, const char *id)
{
    unsigned char starting = KEEP_STARTING;
    atomic_compare_exchange_strong(find_spawn_state(b, id), &starting, KEEP_CONNECTED);
}

/* MPI_Finalize has been called: a failure of one job no longer ends the other. */
static void singleton_spawn_finish(struct boot *b)
{
    struct spawn_state_table *book = singleton_of(b)->spawned.mapping.at;
    if (book)
        atomic_store(&book->finished, 1);
}

struct entry {
    struct entry *next;
    void *val;
    size_t len;
    char key[];
};

static bool singleton_detect(void)
{
    return true;
}

static void singleton_close(struct boot *b)
{
    struct singleton *s = singleton_of(b);
    while (s->entries) {
        struct entry *e = s->entries;
        s->entries = e->next;
        free(e->val);
        free(e);
    }
    mapping_close(&s->spawned.mapping);
    boot_layout_free(b);
    free(s);
}

static int singleton_open(struct boot **out)
{
    struct singleton *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(MPI_ERR_NO_MEM, "Out of memory while starting as a single rank.");
    boot_init(&s->boot, &boot_singleton);
    s->boot.size = 1;
    s->boot.one_machine = true;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char job[64];
    snprintf(job, sizeof(job), "single-%ld-%llx", (long)getpid(),
             (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec);
    int rc = boot_set_layout(&s->boot, NULL, job);
    if (rc) {
        singleton_close(&s->boot);
        return rc;
    }
    *out = &s->boot;
    return 0;
}

static struct entry *singleton_find_key(struct singleton *s, const char *key)
{
    struct entry *e = s->entries;
    while (e && strcmp(e->key, key) != 0)
        e = e->next;
    return e;
}

static int singleton_put(struct boot *b, const char *key, const void *val, size_t len)
{
    struct singleton *s = singleton_of(b);
    struct entry *e = singleton_find_key(s, key);
    void *copy;
    int rc = boot_copy_value(key, val, len, &copy, &len);
    if (rc)
        return rc;
    if (!e) {
        e = calloc(1, sizeof(*e) + strlen(key) + 1);
        if (!e) {
            free(copy);
            return err_set(MPI_ERR_NO_MEM, "Out of memory for the start-up key %s.", key);
        }
        strcpy(e->key, key);
        e->next = s->entries;
        s->entries = e;
    }
    free(e->val);
    e->val = copy;
    e->len = len;
    return 0;
}

static int singleton_fence(struct boot *b)
{
    (void)b;
    return 0;
}

static int singleton_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    struct entry *e = singleton_find_key(singleton_of(b), key);
    (void)rank; /* the job has one rank */
    if (!e)
        return err_set(MPI_ERR_OTHER, "Nothing was published under the start-up key %s.", key);
    return boot_copy_value(key, e->val, e->len, val, len);
}

static int singleton_finalize(struct boot *b)
{
    singleton_spawn_finish(b);
    return 0;
}

static bool singleton_abort(struct boot *b, int code, const char *msg)
{
    (void)b;
    (void)code;
    (void)msg;
    return false;
}

const struct boot_backend boot_singleton = {.name = "singleton",
                                            .detect = singleton_detect,
                                            .open = singleton_open,
                                            .put = singleton_put,
                                            .fence = singleton_fence,
                                            .get = singleton_get,
                                            .finalize = singleton_finalize,
                                            .abort = singleton_abort,
                                            .close = singleton_close,
                                            .spawn = singleton_spawn_start,
                                            .spawn_poll = singleton_spawn_poll,
                                            .spawn_connected = singleton_spawn_connected};
