/* spawn.c: implements MPI_Comm_spawn (spawn.h). The root opens a port, requests a new job from the launcher,
 * passing the name of the port, and accepts; the children connect in MPI_Init. If the job cannot be started,
 * the accept fails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dyn/spawn.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/kill_point.h"
#include "dyn/meet.h"
#include "dyn/port.h"

#define LOOK_NS 20000000u /* ns between two queries for the state of the new job */

/* ---- soft ---- */

static bool read_int(const char **at, int *out)
{
    char *end;
    long v = strtol(*at, &end, 10);
    if (end == *at || v < 0 || v > 1 << 24)
        return false;
    *at = end;
    *out = (int)v;
    return true;
}

/* Evaluates the info key soft, such as "1,4:10:2,16": the largest listed number that is at most `most`; 0
 * if there is none; -1 for a malformed list. */
static int spawn_parse_soft(const char *text, int most)
{
    int best = 0;
    for (const char *at = text; *at;) {
        int first, last, step = 1;
        if (!read_int(&at, &first))
            return -1;
        last = first;
        if (*at == ':' && (at++, !read_int(&at, &last)))
            return -1;
        if (*at == ':' && (at++, !read_int(&at, &step)))
            return -1;
        if (step < 1)
            return -1;
        if (first <= most && last >= first)
            best = MAX(best, first + (MIN(last, most) - first) / step * step);
        if (*at && *at++ != ',')
            return -1;
    }
    return best;
}

static int spawn_process_count(const struct spawn_program *program, int *count)
{
    const char *soft = program->info ? info_get(program->info, "soft") : NULL;
    *count = program->maxprocs;
    if (!soft)
        return 0;
    *count = spawn_parse_soft(soft, program->maxprocs);
    if (*count < 0)
        return err_set(MPI_ERR_INFO_VALUE,
                       "the info key soft is \"%.60s\", which is not a list such as 1,4:10:2", soft);
    return *count > 0 ? 0
                      : err_set(MPI_ERR_SPAWN,
                                "the info key soft (\"%.60s\") allows no number of processes up to %d", soft,
                                program->maxprocs);
}

/* ---- the request ---- */

/* `to` points into from->info, which the caller releases. */
static int spawn_translate_program(const struct spawn_program *from, struct boot_program *to)
{
    int n = from->info ? from->info->count : 0;
    const char **words = calloc(2 * (size_t)n + 1, sizeof(*words));
    if (!words)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot spawn %s", from->command);
    for (int i = 0; i < n; i++) {
        words[i] = from->info->pairs[i].key;
        words[n + i] = from->info->pairs[i].value;
    }
    *to = (struct boot_program){
        .command = from->command, .argv = from->argv, .keys = words, .values = words + n, .nkeys = n};
    return spawn_process_count(from, &to->count);
}

static int spawn_check_programs(const struct spawn_program *programs, int n)
{
    for (int i = 0; i < n; i++) {
        if (!programs[i].command || !*programs[i].command)
            return err_set(MPI_ERR_ARG, "program %d has no name", i);
        if (programs[i].maxprocs <= 0)
            return err_set(MPI_ERR_SPAWN, "maxprocs is %d; it must be at least 1", programs[i].maxprocs);
    }
    return 0;
}

static int spawn_request_launcher(struct proc *p, const struct spawn_program *programs, int n,
                                  const char *port, char *id)
{
    int rc = spawn_check_programs(programs, n);
    struct boot_program *list = rc ? NULL : calloc((size_t)n, sizeof(*list));
    if (!list)
        return rc ? rc : err_set(MPI_ERR_NO_MEM, "out of memory: cannot spawn %d programs", n);
    struct spawn_program *own = calloc((size_t)n, sizeof(*own));
    if (!own)
        rc = err_set(MPI_ERR_NO_MEM, "out of memory: cannot spawn %d programs", n);
    for (int i = 0; i < n && !rc; i++) {
        own[i] = programs[i];
        rc = spawn_info(programs[i].info, &own[i].info);
        rc = rc ? rc : spawn_translate_program(&own[i], &list[i]);
    }
    rc = rc ? rc : boot_spawn(p->boot, list, n, port, id);
    for (int i = 0; i < n; i++) {
        free((void *)(uintptr_t)list[i].keys);
        info_release(own ? own[i].info : NULL);
    }
    free(own);
    free(list);
    return rc;
}

/* ---- the parents ---- */

struct waiting {
    struct proc *proc;
    char id[BOOT_SPAWN_ID];
    uint64_t since, next;
};

static int spawn_poll_answer(void *arg)
{
    struct waiting *w = arg;
    uint64_t now = clock_ns();
    if (now < w->next)
        return 0;
    w->next = now + LOOK_NS;
    return boot_spawn_poll(w->proc->boot, w->id, w->since);
}

/* True if all children will run on this machine. Keys or the key file may name other hosts. */
static bool spawns_on_this_machine(const struct proc *p, const struct spawn_program *programs, int n)
{
    static const char *const keys[] = {"host", "hosts", "file"};
    for (int i = 0; i < n; i++)
        for (size_t k = 0; programs[i].info && k < COUNT_OF(keys); k++)
            if (info_get(programs[i].info, keys[k]))
                return false;
    return p->boot->one_machine;
}

static int spawn_start(struct proc *p, const struct spawn_program *programs, int n, struct channel *channel)
{
    char port[MPI_MAX_PORT_NAME];
    struct waiting w = {.proc = p};
    struct port_watch watch = {spawn_poll_answer, &w};
    int rc = port_open(p, spawns_on_this_machine(p, programs, n) ? PORT_MACHINE : PORT_NETWORK, port);
    if (rc)
        return rc;
    KILL_POINT(spawn_port_open);
    rc = spawn_request_launcher(p, programs, n, port, w.id);
    KILL_POINT(spawn_requested);
    w.since = clock_ns();
    w.next = w.since + LOOK_NS;
    rc = rc ? rc : port_accept(p, port, &watch, channel);
    KILL_POINT(spawn_accepted);
    if (!rc)
        boot_spawn_connected(p->boot, w.id);
    port_close(p, port);
    return rc;
}

int spawn_programs(struct comm *comm, int root, int root_error, const struct spawn_program *programs, int n,
                   struct comm **out, int *errcodes)
{
    struct channel channel = {.fd = -1};
    static const struct meet_kind kind = {.how = "children of"};
    bool is_root = comm->rank == root;
    if (is_root && !root_error)
        root_error = spawn_start(comm->proc, programs, n, &channel);
    int rc = meet_connect_groups(comm, root, &channel, root_error, &kind, out);
    /* Only the root knows the number of processes; each rank may pass MPI_ERRCODES_IGNORE or not. */
    int total = 0;
    for (int i = 0; is_root && programs && i < n; i++)
        total += MAX(programs[i].maxprocs, 0);
    int shared = broadcast_bytes(comm, root, &total, sizeof(total));
    int started = rc ? 0 : (*out)->remote->size;
    for (int i = 0; errcodes && i < total && !shared; i++)
        errcodes[i] = rc ? rc : i < started ? MPI_SUCCESS : MPI_ERR_SPAWN;
    return rc ? rc : shared;
}

/* ---- the children ---- */

int spawn_connect_to_parents(struct proc *p)
{
    static const struct meet_kind kind = {.how = "parents of"};
    if (!p->boot->parent || p->parent)
        return 0;
    int rc = meet_connect(p->world, 0, p->boot->parent, NULL, &kind, &p->parent);
    if (!rc)
        strcpy(p->parent->name, "MPI_COMM_PARENT");
    return rc;
}

/* Info keys of MPI_Comm_spawn that are evaluated without the launcher (MPI-5.0, 11.8.4): `file` names a file
 * with more keys, one in each line, and `arch` requires a processor architecture. */

static char *spawn_info_trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    return text;
}

/* Adds a line of the key file, such as "wdir = /tmp". Keys that the program has set take precedence. */
static int add_info_line(struct info *info, char *line, const char *path, int number)
{
    char *key = spawn_info_trim(line), *equals = strchr(key, '=');
    if (*key == '\0' || *key == '#')
        return 0;
    if (!equals || equals == key)
        return err_set(MPI_ERR_INFO_VALUE, "line %d of %.200s, the info key file, is not \"key = value\"",
                       number, path);
    *equals = '\0';
    key = spawn_info_trim(key);
    char *value = spawn_info_trim(equals + 1);
    if (strlen(key) >= MPI_MAX_INFO_KEY || strlen(value) >= MPI_MAX_INFO_VAL)
        return err_set(MPI_ERR_INFO_VALUE, "line %d of %.200s, the info key file, is too long", number, path);
    return info_get(info, key) ? 0 : info_set(info, key, value);
}

static int read_file(struct info *info, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int rc = 0;
    if (!f)
        return err_set(MPI_ERR_INFO_VALUE, "cannot open %.200s, the info key file: %s", path,
                       strerror(errno));
    for (int number = 1; !rc && getline(&line, &room, f) >= 0; number++)
        rc = add_info_line(info, line, path, number);
    free(line);
    fclose(f);
    return rc;
}

static int check_arch(const char *wanted)
{
    struct utsname here;
    if (uname(&here) != 0 || strcasecmp(wanted, here.machine) == 0)
        return 0;
    return err_set(MPI_ERR_SPAWN, "the info key arch requires %.60s, but the processors of this job are %s",
                   wanted, here.machine);
}

int spawn_info(const struct info *given, struct info **out)
{
    *out = NULL;
    int rc = given ? info_copy(given, out) : 0;
    if (rc || !given)
        return rc;
    const char *path = info_get(given, "file");
    rc = path ? read_file(*out, path) : 0;
    const char *arch = rc ? NULL : info_get(*out, "arch");
    rc = arch ? check_arch(arch) : rc;
    if (path)
        info_delete(*out, "file");
    if (info_get(*out, "arch"))
        info_delete(*out, "arch");
    if (rc) {
        info_release(*out);
        *out = NULL;
    }
    return rc;
}
