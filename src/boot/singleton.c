/* singleton.c: no launcher: a job of one rank. It is also the smallest possible back end. Keys are kept in a
 * list, because the layers above need not know that no other rank will ask for them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "boot/backend.h"
#include "boot/singleton_spawn.h"

struct entry {
    struct entry *next;
    char *key;
    void *val;
    size_t len;
};

struct singleton {
    struct boot boot;
    struct singleton_spawn spawned;
    struct entry *entries;
};

static bool singleton_detect(void)
{
    return true;
}

static void singleton_close(struct boot *b)
{
    struct singleton *s = container_of(b, struct singleton, boot);
    while (s->entries) {
        struct entry *e = s->entries;
        s->entries = e->next;
        free(e->key);
        free(e->val);
        free(e);
    }
    singleton_spawn_close(&s->spawned);
    boot_layout_free(b);
    free(s);
}

static int singleton_open(struct boot **out)
{
    struct singleton *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(MPI_ERR_NO_MEM, "Out of memory while starting as a single rank.");
    s->boot = (struct boot){.size = 1,
                            .appnum = -1,
                            .universe_size = -1,
                            .vnode = -1,
                            .node_fd = -1,
                            .launcher = "singleton",
                            .one_machine = true,
                            .backend = &boot_singleton};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char job[64];
    snprintf(job, sizeof(job), "single-%ld-%llx", (long)getpid(),
             (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec);
    int rc = boot_layout(&s->boot, NULL, job);
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

static void *copy_bytes(const void *val, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy) {
        if (len)
            memcpy(copy, val, len);
        copy[len] = '\0';
    }
    return copy;
}

static int singleton_put(struct boot *b, const char *key, const void *val, size_t len)
{
    struct singleton *s = container_of(b, struct singleton, boot);
    struct entry *e = singleton_find_key(s, key);
    bool fresh = !e;
    if (fresh)
        e = calloc(1, sizeof(*e));
    void *copy = copy_bytes(val, len);
    char *name = fresh ? strdup(key) : NULL;
    if (!e || !copy || (fresh && !name)) {
        free(copy);
        free(name);
        if (fresh)
            free(e);
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the start-up key %s.", key);
    }
    free(e->val);
    e->val = copy;
    e->len = len;
    if (fresh) {
        e->key = name;
        e->next = s->entries;
        s->entries = e;
    }
    return 0;
}

static int singleton_fence(struct boot *b)
{
    (void)b;
    return 0;
}

static int singleton_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    struct entry *e = singleton_find_key(container_of(b, struct singleton, boot), key);
    (void)rank; /* there is one only */
    if (!e)
        return err_set(MPI_ERR_OTHER, "Nothing was published under the start-up key %s.", key);
    void *copy = copy_bytes(e->val, e->len);
    if (!copy)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the start-up key %s.", key);
    *val = copy;
    *len = e->len;
    return 0;
}

static int singleton_finalize(struct boot *b)
{
    singleton_spawn_finish(&container_of(b, struct singleton, boot)->spawned);
    return 0;
}

static bool singleton_abort(struct boot *b, int code, const char *msg)
{
    (void)b;
    (void)code;
    (void)msg;
    return false;
}

static int singleton_spawn(struct boot *b, const struct boot_program *programs, int n, const char *port,
                           char id[BOOT_SPAWN_ID])
{
    return singleton_spawn_start(&container_of(b, struct singleton, boot)->spawned, programs, n, port, id);
}

static int singleton_poll(struct boot *b, const char *id)
{
    return singleton_spawn_poll(&container_of(b, struct singleton, boot)->spawned, id);
}

static void singleton_record_connected(struct boot *b, const char *id)
{
    singleton_spawn_connected(&container_of(b, struct singleton, boot)->spawned, id);
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
                                            .spawn = singleton_spawn,
                                            .spawn_poll = singleton_poll,
                                            .spawn_connected = singleton_record_connected};
