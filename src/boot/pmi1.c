/* pmi1.c: the PMI-1 back end: Fishplate's mpiexec, Hydra, and srun --mpi=pmi2, which accepts the same
 * protocol. Under Fishplate's mpiexec the environment contains the layout, and requests that need no
 * answer are marked `quiet`, so that a job on one node starts and ends without a round trip.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/backend.h"
#include "boot/chunk.h"
#include "boot/death_watcher.h"
#include "boot/launch_env.h"
#include "boot/notice.h"
#include "boot/pmi1_conn.h"
#include "boot/program.h"
#include "boot/launcher_watch.h"

#define RANKS_MAX (1u << 24)
#define STORE_KEY_MAX \
    96 /* bytes of a key buffer; keys have less than PMI_KEY_MAX, but compilers cannot infer that */

struct pmi1 {
    struct boot boot;
    struct pmi1_conn conn;
    struct launcher_watch watch;  /* unused under Fishplate's mpiexec: the kernel ends its ranks */
    struct death_watcher watcher; /* used if the launcher does not end the job when a rank dies */
    bool ours;                    /* the server is a mpiexec of Fishplate of the same version */
    char kvs[256];
};

static struct pmi1 *pmi1_of(struct boot *b)
{
    return container_of(b, struct pmi1, boot);
}

static bool env_number(const char *name, long min, long max, long *out)
{
    const char *text = env_get(name);
    struct pmi_line one = {.n = 1, .word[0] = {name, text}};
    return text && pmi_line_int(&one, name, min, max, out);
}

/* Sends a request and receives the answer, whose command must be `answer`. The caller checks the result
 * code in the answer. */
static int pmi1_request(struct pmi1 *p, const char *answer, const char *request)
{
    int rc = pmi1_conn_send(&p->conn, "%s", request);
    if (rc == 0)
        rc = pmi1_conn_recv(&p->conn, boot_deadline());
    if (rc == PMI1_LATE)
        return err_set(MPI_ERR_OTHER, "The launcher did not answer \"%s\" within %d seconds.", request,
                       boot_timeout());
    if (rc)
        return rc;
    const char *cmd = pmi_line_get(&p->conn.line, "cmd");
    if (!cmd || strcmp(cmd, answer) != 0)
        return err_set(MPI_ERR_OTHER, "The launcher answered \"%s\" with %.60s, not with %s.", request,
                       cmd ? cmd : "no command", answer);
    return 0;
}

static bool pmi1_detect(void)
{
    return env_get("PMI_FD") || env_get("PMI_PORT");
}

static void pmi1_close(struct boot *b)
{
    struct pmi1 *p = pmi1_of(b);
    /* If pmi1_finalize was not called, MPI_Init has failed: the death watcher keeps running and ends the
     * job when this process ends, because the other ranks wait for this one in MPI_Init. */
    launcher_watch_stop(&p->watch);
    pmi1_conn_close(&p->conn);
    if (b->node_fd >= 0)
        close(b->node_fd);
    notice_unmap(b->notices);
    boot_layout_free(b);
    free(p);
}

/* Uses the inherited socket PMI_FD; PMI_RANK and PMI_SIZE are in the environment. */
static int pmi1_use_inherited_socket(struct pmi1 *p)
{
    long fd, rank, size;
    if (!env_number("PMI_FD", 0, 1 << 20, &fd) || fcntl((int)fd, F_GETFD) < 0)
        return err_set(
            MPI_ERR_OTHER,
            "PMI_FD is \"%s\", which is not an open file. If a rank started this program, unset PMI_FD to "
            "run it alone.",
            env_get("PMI_FD"));
    if (!env_number("PMI_SIZE", 1, RANKS_MAX, &size) || !env_number("PMI_RANK", 0, size - 1, &rank))
        return err_set(MPI_ERR_OTHER, "PMI_FD is set, but PMI_RANK or PMI_SIZE is missing or out of range.");
    p->conn.fd = (int)fd;
    p->boot.rank = (uint32_t)rank;
    p->boot.size = (uint32_t)size;
    /* Programs that this rank starts must not use its connection to the launcher. */
    fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

/* Connects to the address PMI_PORT; the server sends rank and size. */
static int connect_port(struct pmi1 *p)
{
    const char *id = env_get("PMI_ID");
    int rc = pmi1_conn_connect(&p->conn, env_get("PMI_PORT"));
    if (rc)
        return rc;
    char request[64];
    snprintf(request, sizeof(request), "cmd=initack pmiid=%.20s", id ? id : "0");
    rc = pmi1_request(p, "initack", request);
    /* Three lines follow, `cmd=set` of size, rank and debug. */
    for (int i = 0; i < 3 && rc == 0; i++) {
        long v;
        rc = pmi1_conn_recv(&p->conn, boot_deadline());
        if (rc == PMI1_LATE)
            return err_set(MPI_ERR_OTHER, "The launcher did not give this process its rank.");
        if (rc == 0 && pmi_line_int(&p->conn.line, "size", 1, RANKS_MAX, &v))
            p->boot.size = (uint32_t)v;
        if (rc == 0 && pmi_line_int(&p->conn.line, "rank", 0, RANKS_MAX, &v))
            p->boot.rank = (uint32_t)v;
    }
    if (rc == 0 && p->boot.rank >= p->boot.size)
        return err_set(MPI_ERR_OTHER, "The launcher gave this process rank %u in a job of %u ranks.",
                       p->boot.rank, p->boot.size);
    return rc;
}

/* True if the server is Fishplate's mpiexec of the same version. Other versions are treated as any PMI-1
 * server. */
static bool is_own_launcher(const struct pmi1 *p)
{
    const char *version = env_get(ENV_LAUNCHER);
    long rank, size;
    if (!version || !env_get("PMI_FD"))
        return false;
    if (!env_number(ENV_WORLD_RANK, 0, RANKS_MAX, &rank) ||
        !env_number(ENV_WORLD_SIZE, 1, RANKS_MAX, &size) || (uint32_t)rank != p->boot.rank ||
        (uint32_t)size != p->boot.size)
        return false;
    if (strcmp(version, FISHPLATE_VERSION) == 0)
        return true;
    if (rank == 0)
        log_warn("this program uses Fishplate %s but was started by the mpiexec of Fishplate %s; use the "
                 "mpiexec that "
                 "belongs to the library",
                 FISHPLATE_VERSION, version);
    return false;
}

static int open_own_launcher(struct pmi1 *p)
{
    struct boot *b = &p->boot;
    long v;
    b->launcher = "mpiexec";
    if (env_number(ENV_APPNUM, 0, RANKS_MAX, &v))
        b->appnum = (int)v;
    if (env_number(ENV_UNIVERSE, 1, RANKS_MAX, &v))
        b->universe_size = (int)v;
    b->several = env_get(ENV_SEVERAL) != NULL;
    b->one_machine = env_get(ENV_ONE_MACHINE) != NULL;
    if (env_number(ENV_VNODE, 0, RANKS_MAX, &v))
        b->vnode = (int)v;
    if (env_number(ENV_NODE_FD, 0, 1 << 20, &v) && fcntl((int)v, F_SETFD, FD_CLOEXEC) == 0)
        b->node_fd = (int)v;
    if (env_number(ENV_NOTICES, 0, 1 << 20, &v) && fcntl((int)v, F_SETFD, FD_CLOEXEC) == 0) {
        b->notices = notice_map((int)v);
        close((int)v);
    }
    const char *job = env_get(ENV_JOB);
    snprintf(p->kvs, sizeof(p->kvs), "%s", job ? job : "");
    return pmi1_conn_send(&p->conn, "cmd=init pmi_version=1 pmi_subversion=1 quiet=1");
}

static int pmi1_open_foreign_launcher(struct pmi1 *p)
{
    long v;
    int rc = pmi1_request(p, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1");
    if (rc)
        return rc;
    if (pmi_line_int(&p->conn.line, "rc", INT32_MIN, INT32_MAX, &v) && v != 0)
        return err_set(MPI_ERR_OTHER, "The launcher refuses PMI version 1.1 (rc=%ld).", v);
    rc = pmi1_request(p, "my_kvsname", "cmd=get_my_kvsname");
    if (rc)
        return rc;
    const char *kvs = pmi_line_get(&p->conn.line, "kvsname");
    if (!kvs || !*kvs || strlen(kvs) >= sizeof(p->kvs))
        return err_set(MPI_ERR_OTHER, "The launcher did not name its key-value space.");
    strcpy(p->kvs, kvs);
    rc = pmi1_request(p, "appnum", "cmd=get_appnum");
    if (rc)
        return rc;
    if (pmi_line_int(&p->conn.line, "appnum", 0, INT32_MAX, &v))
        p->boot.appnum = (int)v;
    rc = pmi1_request(p, "universe_size", "cmd=get_universe_size");
    if (rc == 0 && pmi_line_int(&p->conn.line, "size", 1, INT32_MAX, &v))
        p->boot.universe_size = (int)v;
    return rc;
}

/* Fetches a stored value. *found: the server has the key. */
static int get_value(struct pmi1 *p, const char *key, bool *found, const char **value)
{
    char request[512];
    snprintf(request, sizeof(request), "cmd=get kvsname=%s key=%s", p->kvs, key);
    int rc = pmi1_request(p, "get_result", request);
    if (rc)
        return rc;
    long code = 0;
    *value = pmi_line_get(&p->conn.line, "value");
    *found = *value && (!pmi_line_get(&p->conn.line, "rc") ||
                        (pmi_line_int(&p->conn.line, "rc", INT32_MIN, INT32_MAX, &code) && code == 0));
    return 0;
}

static int pmi1_read_node_map(struct pmi1 *p)
{
    const char *map = p->ours ? env_get(ENV_NODE_MAP) : NULL;
    if (p->boot.size == 1 || map)
        return boot_set_layout(&p->boot, map, p->kvs);
    bool found;
    int rc = get_value(p, "PMI_process_mapping", &found, &map);
    if (rc)
        return rc;
    if (!found)
        return err_set(MPI_ERR_OTHER,
                       "The launcher does not report which rank is on which node (PMI_process_mapping).");
    return boot_set_layout_foreign(&p->boot, map, p->kvs);
}

/* Reads the port of the processes that have spawned this job. If the parents started an mpiexec of their
 * own, the port is in the environment (singleton.c) and must not be used by jobs that this job
 * spawns. */
static int pmi1_read_parent_port(struct pmi1 *p)
{
    const char *value;
    bool found;
    if (!env_get("PMI_SPAWNED") || strcmp(env_get("PMI_SPAWNED"), "0") == 0)
        return program_read_parent_port(&p->boot);
    unsetenv(ENV_PARENT);
    int rc = get_value(p, BOOT_PARENT_KEY, &found, &value);
    if (rc == 0 && found && !(p->boot.parent = strdup(value)))
        rc = err_set(MPI_ERR_NO_MEM, "Out of memory for the name of the parents' port.");
    return rc;
}

static int pmi1_open(struct boot **out)
{
    struct pmi1 *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the connection to the launcher.");
    p->conn.fd = -1;
    boot_init(&p->boot, &boot_pmi1);
    int rc = env_get("PMI_FD") ? pmi1_use_inherited_socket(p) : connect_port(p);
    if (rc == 0) {
        p->ours = is_own_launcher(p);
        rc = p->ours ? open_own_launcher(p) : pmi1_open_foreign_launcher(p);
    }
    if (rc == 0)
        rc = pmi1_read_node_map(p);
    if (rc == 0)
        rc = pmi1_read_parent_port(p);
    if (rc) {
        pmi1_close(&p->boot);
        return rc;
    }
    if (!p->ours)
        launcher_watch_start(&p->watch, &p->boot, p->conn.fd);
    /* Hydra ends a job when a rank dies; Slurm does so only with srun -K. */
    if (!p->ours)
        death_watcher_start(&p->watcher, &p->boot, p->conn.fd);
    *out = &p->boot;
    return 0;
}

/* Formats the key of a piece of a value: "fp.<rank>.<key>.<piece>". */
static void format_store_key(uint32_t rank, const char *key, size_t piece, char *out)
{
    snprintf(out, STORE_KEY_MAX, "fp.%u.%.40s.%zu", rank, key, piece);
}

static int put_chunk(struct pmi1 *p, const char *name, const char *text, size_t len)
{
    char request[PMI_CHUNK + 512];
    snprintf(request, sizeof(request), "cmd=put kvsname=%s key=%s value=%.*s%s", p->kvs, name, (int)len, text,
             p->ours ? " quiet=1" : "");
    if (p->ours)
        return pmi1_conn_send(&p->conn, "%s", request);
    long code;
    int rc = pmi1_request(p, "put_result", request);
    if (rc == 0 && (!pmi_line_int(&p->conn.line, "rc", INT32_MIN, INT32_MAX, &code) || code != 0))
        rc = err_set(MPI_ERR_OTHER, "The launcher refused to store the start-up key %s.", name);
    return rc;
}

static int pmi1_put(struct boot *b, const char *key, const void *val, size_t len)
{
    struct pmi1 *p = pmi1_of(b);
    size_t text_len;
    if (len > CHUNK_VALUE_MAX)
        return err_set(MPI_ERR_ARG, "The start-up value of %s is too long (%zu bytes).", key, len);
    char *text = chunk_encode(val, len, &text_len);
    if (!text)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the start-up value of %s.", key);
    int rc = 0;
    for (size_t at = 0; at < text_len && rc == 0; at += PMI_CHUNK) {
        char name[STORE_KEY_MAX];
        format_store_key(b->rank, key, at / PMI_CHUNK, name);
        rc = put_chunk(p, name, text + at, MIN(text_len - at, (size_t)PMI_CHUNK));
    }
    free(text);
    return rc;
}

/* Reports a fence that timed out, with the missing ranks if the server is Fishplate's mpiexec; PMI-1 has
 * no such query. */
static int report_late_fence(struct pmi1 *p)
{
    char who[1500] = "the launcher cannot tell which ranks are missing";
    p->conn.late = 0; /* the server answers this request before the fence */
    if (p->ours && pmi1_conn_send(&p->conn, "cmd=missing") == 0 &&
        pmi1_conn_recv(&p->conn, clock_ns() + 5000000000u) == 0) {
        const char *cmd = pmi_line_get(&p->conn.line, "cmd");
        const char *msg = pmi_line_get(&p->conn.line, "msg");
        if (cmd && strcmp(cmd, "missing_result") == 0 && msg) {
            snprintf(who, sizeof(who), "%s", msg);
            pmi_unescape(who);
        }
    }
    return err_set(MPI_ERR_OTHER,
                   "Start-up did not finish within %d seconds (FISHPLATE_INIT_TIMEOUT) because not all ranks "
                   "arrived: %s.",
                   boot_timeout(), who);
}

static int pmi1_fence(struct boot *b)
{
    struct pmi1 *p = pmi1_of(b);
    int rc = pmi1_conn_send(&p->conn, "cmd=barrier_in");
    if (rc == 0)
        rc = pmi1_conn_recv(&p->conn, boot_deadline());
    if (rc == PMI1_LATE)
        return report_late_fence(p);
    if (rc)
        return rc;
    const char *cmd = pmi_line_get(&p->conn.line, "cmd");
    if (!cmd || strcmp(cmd, "barrier_out") != 0)
        return err_set(MPI_ERR_OTHER, "The launcher ended the start-up barrier with %.60s.",
                       cmd ? cmd : "no command");
    return 0;
}

static int pmi1_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    struct pmi1 *p = pmi1_of(b);
    char *text = NULL;
    size_t have = 0, total = 1;
    int rc = 0;
    for (size_t piece = 0; have < total && rc == 0; piece++) {
        char name[STORE_KEY_MAX];
        const char *value;
        bool found;
        format_store_key(rank, key, piece, name);
        rc = get_value(p, name, &found, &value);
        if (rc)
            break;
        if (!found) {
            rc = err_set(MPI_ERR_OTHER, "Rank %u did not publish the start-up key %s.", rank, key);
            break;
        }
        size_t n = strlen(value);
        bool bad = piece == 0 && (!chunk_text_len(value, &total) || !(text = malloc(total + 1)));
        if (bad || n == 0 || n > total - have) {
            rc = err_set(MPI_ERR_OTHER, "The start-up value %s came back damaged from the launcher.", name);
            break;
        }
        memcpy(text + have, value, n);
        have += n;
        text[have] = '\0';
    }
    if (rc == 0 && !chunk_decode(text, total, val, len))
        rc = err_set(MPI_ERR_OTHER, "The start-up value of %s came back damaged from the launcher.", key);
    free(text);
    return rc;
}

/* A request to spawn, written to a memory stream. */
struct spawn_text {
    FILE *file;
    bool escapes; /* percent-encode values: Fishplate's mpiexec accepts any bytes */
    int rc;       /* error class of the first value that cannot be written */
};

static void spawn_write_text(struct spawn_text *t, const char *key, const char *value)
{
    const size_t size = 3 * strlen(value) + 1;
    char *text = t->escapes ? malloc(size) : NULL;
    if (t->escapes && !text)
        t->rc = err_set(MPI_ERR_NO_MEM, "Out of memory for the request to spawn %.200s.", value);
    else if (!t->escapes && strchr(value, '\n'))
        t->rc =
            err_set(MPI_ERR_SPAWN,
                    "Processes cannot be spawned: PMI-1 cannot carry the line break in \"%.200s\".", value);
    if (text)
        pmi_escape(value, text, size);
    fprintf(t->file, "%s=%s\n", key, text ? text : value);
    free(text);
}

static void spawn_write_number(struct spawn_text *t, const char *key, int value)
{
    fprintf(t->file, "%s=%d\n", key, value);
}

static void spawn_write_program(struct spawn_text *t, const struct boot_program *program, const char *port)
{
    char key[32];
    int args = 0;
    if (t->escapes)
        fputs("escaped=1\n", t->file);
    spawn_write_text(t, "execname", program->command);
    while (program->argv && program->argv[args])
        args++;
    spawn_write_number(t, "argcnt", args);
    for (int i = 0; i < args; i++) {
        snprintf(key, sizeof(key), "arg%d", i + 1);
        spawn_write_text(t, key, program->argv[i]);
    }
    spawn_write_number(t, "preput_num", 1);
    spawn_write_text(t, "preput_key_0", BOOT_PARENT_KEY);
    spawn_write_text(t, "preput_val_0", port);
    spawn_write_number(t, "info_num", program->nkeys);
    for (int i = 0; i < program->nkeys; i++) {
        snprintf(key, sizeof(key), "info_key_%d", i);
        spawn_write_text(t, key, program->keys[i]);
        snprintf(key, sizeof(key), "info_val_%d", i);
        spawn_write_text(t, key, program->values[i]);
    }
}

/* Writes the request, which the caller frees, to *text. */
static int spawn_request(const struct pmi1 *p, const struct boot_program *programs, int n, const char *port,
                         char **text, size_t *len)
{
    *text = NULL;
    struct spawn_text t = {.file = open_memstream(text, len), .escapes = p->ours};
    bool written = t.file != NULL;
    for (int i = 0; i < n && written; i++) {
        fputs("mcmd=spawn\n", t.file);
        spawn_write_number(&t, "nprocs", programs[i].count);
        spawn_write_number(&t, "totspawns", n);
        spawn_write_number(&t, "spawnssofar", i + 1);
        spawn_write_program(&t, &programs[i], port);
        fputs("endcmd\n", t.file);
    }
    written = written && fclose(t.file) == 0;
    return t.rc || written
               ? t.rc
               : err_set(MPI_ERR_NO_MEM, "Out of memory for the request to spawn %d programs.", n);
}

static int spawn_report_refusal(struct pmi1 *p, const char *what)
{
    char why[1500] = "it gives no reason";
    const char *msg = pmi_line_get(&p->conn.line, "msg");
    if (msg && *msg) {
        snprintf(why, sizeof(why), "%s", msg);
        pmi_unescape(why);
    }
    return err_set(MPI_ERR_SPAWN, "%s: %s", what, why);
}

static int pmi1_spawn(struct boot *b, const struct boot_program *programs, int n, const char *port,
                      char id[BOOT_SPAWN_ID])
{
    struct pmi1 *p = pmi1_of(b);
    size_t len;
    char *text;
    int rc = spawn_request(p, programs, n, port, &text, &len);
    rc = rc ? rc : pmi1_conn_write(&p->conn, text, len);
    free(text);
    rc = rc ? rc : pmi1_conn_recv(&p->conn, boot_deadline());
    if (rc == PMI1_LATE)
        return err_set(MPI_ERR_SPAWN, "The launcher did not answer a request to spawn within %d seconds.",
                       boot_timeout());
    if (rc)
        return rc;
    long code = 0;
    const char *cmd = pmi_line_get(&p->conn.line, "cmd"), *job = pmi_line_get(&p->conn.line, "jobid");
    pmi_line_int(&p->conn.line, "rc", INT32_MIN, INT32_MAX, &code);
    if (!cmd || strcmp(cmd, "spawn_result") != 0 || code != 0)
        return spawn_report_refusal(p, "The launcher refused to spawn");
    snprintf(id, BOOT_SPAWN_ID, "%s", job ? job : "");
    return 0;
}

static int pmi1_spawn_poll(struct boot *b, const char *id)
{
    struct pmi1 *p = pmi1_of(b);
    char request[128];
    long code = 0;
    if (!p->ours || !*id)
        return BOOT_CANNOT_QUERY;
    snprintf(request, sizeof(request), "cmd=spawn_state jobid=%.60s", id);
    int rc = pmi1_request(p, "spawn_state_result", request);
    if (rc == 0 && pmi_line_int(&p->conn.line, "rc", INT32_MIN, INT32_MAX, &code) && code != 0)
        rc = spawn_report_refusal(p, "The new processes could not be started");
    return rc;
}

static int pmi1_finalize(struct boot *b)
{
    struct pmi1 *p = pmi1_of(b);
    death_watcher_stop(&p->watcher);
    launcher_watch_stop(&p->watch);
    if (p->ours)
        return pmi1_conn_send(&p->conn, "cmd=finalize quiet=1");
    return pmi1_request(p, "finalize_ack", "cmd=finalize");
}

/* After this report the launcher may continue the job after a death. Before it a death ends the job: other
 * ranks may wait for the dead rank without being notified. */
static int pmi1_report_initialized(struct boot *b)
{
    return b->notices ? pmi1_conn_send(&pmi1_of(b)->conn, "cmd=ready quiet=1") : 0;
}

static int pmi1_report_suspect(struct boot *b, uint32_t rank)
{
    return b->notices ? pmi1_conn_send(&pmi1_of(b)->conn, "cmd=accuse rank=%u quiet=1", rank)
                      : MPI_ERR_UNSUPPORTED_OPERATION;
}

static bool pmi1_abort(struct boot *b, int code, const char *msg)
{
    struct pmi1 *p = pmi1_of(b);
    if (!p->ours) {
        boot_print_abort(b, code, msg);
        pmi1_conn_send(&p->conn, "cmd=abort exitcode=%d", code);
        return true;
    }
    char text[1800];
    pmi_escape(msg ? msg : "", text, sizeof(text));
    return pmi1_conn_send(&p->conn, "cmd=abort exitcode=%d msg=%s", code, text) == 0;
}

const struct boot_backend boot_pmi1 = {.name = "pmi1",
                                       .detect = pmi1_detect,
                                       .open = pmi1_open,
                                       .put = pmi1_put,
                                       .fence = pmi1_fence,
                                       .get = pmi1_get,
                                       .finalize = pmi1_finalize,
                                       .report_initialized = pmi1_report_initialized,
                                       .report_suspect = pmi1_report_suspect,
                                       .abort = pmi1_abort,
                                       .close = pmi1_close,
                                       .spawn = pmi1_spawn,
                                       .spawn_poll = pmi1_spawn_poll};
