/* pointer.c: see pointer.h. The side file is created when a rank first uses the shared pointer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/pointer.h"

#include <stdatomic.h>

#include "base/checked.h"
#include "io/agree.h"
#include "io/sidefile.h"

#define NO_WORD UINT64_MAX
/* In the node's shared memory: the pointer, and the turn to write (mapped.h), each in a cache line. */
#define WORDS_LENGTH (2 * CACHE_LINE)

int pointer_open(struct file *f)
{
    struct net *net = f->comm->proc->net;
    struct {
        uint64_t word, keys[SIDEFILE_KEYS];
    } chosen = {.word = NO_WORD};
    int failed = 0;
    f->shared.fd = -1;
    if (f->comm->rank == 0) {
        if (f->nnodes == 1 && net->area && net_area_alloc(net, WORDS_LENGTH, &chosen.word) != 0)
            chosen.word = NO_WORD;
        if (chosen.word == NO_WORD)
            failed = sidefile_choose_keys(chosen.keys);
    }
    int rc = agree_bcast(f->comm, &chosen, sizeof(chosen));
    if (rc || failed)
        return rc ? rc : failed;
    f->shared.offset = chosen.word;
    if (chosen.word == NO_WORD)
        return sidefile_init(f, chosen.keys);
    f->shared.word = (void *)(net->area + chosen.word);
    if (f->comm->size > 1 && (f->in_memory ? f->maps : f->near && !net->oversubscribed))
        f->turn = (void *)(net->area + chosen.word + CACHE_LINE);
    return 0;
}

void pointer_close(struct file *f, bool remove)
{
    if (f->shared.word && f->comm->rank == 0)
        net_area_free(f->comm->proc->net, f->shared.offset, WORDS_LENGTH);
    sidefile_close(f, remove);
}

int pointer_fetch_and_add(struct file *f, int64_t etypes, int64_t *before)
{
    if (!f->shared.word)
        return sidefile_change_value(f, true, etypes, before);
    int64_t after;
    *before = atomic_load(f->shared.word);
    do {
        if (!checked_add(*before, etypes, &after))
            return err_set(MPI_ERR_ARG, "%s: the shared file pointer would be beyond the largest offset",
                           f->name);
    } while (!atomic_compare_exchange_weak(f->shared.word, before, after));
    return 0;
}

int pointer_set(struct file *f, int64_t etypes)
{
    int64_t before;
    if (!f->shared.word)
        return sidefile_change_value(f, false, etypes, &before);
    atomic_store(f->shared.word, etypes);
    return 0;
}

void pointer_restart(struct file *f, int64_t etypes)
{
    if (!f->shared.word)
        sidefile_restart(f, etypes);
    else if (f->comm->rank == 0)
        atomic_store(f->shared.word, etypes);
}
