/* singleton.c: the back end of a process without a launcher: a job of one rank. Values that the rank
 * publishes are stored in a list.
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
