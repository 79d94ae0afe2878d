/* choice_share.c: how much of a split message the receiver reads, so that both ranks are ready at the same time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "p2p/choice.h"

#define PAGE        4096u
#define SHARE_START 36 /* of CHOICE_SHARES */
#define SHARE_LEAST 20 /* beyond these limits reading alone is as good */
#define SHARE_MOST  44
#define SHARE_NS    400 /* the sender begins later, and has to say that it is done */

/* In a window the two overlap anyway, and halves are right. */
uint64_t choice_share(const struct choice *c, const struct choice_ticket *t)
{
    uint64_t known = c->classes[t->flow][t->size].share, share = known ? known : SHARE_START;
    if (!choice_one_by_one(t->flow))
        share = CHOICE_SHARES / 2;
    uint64_t mine = t->bytes / CHOICE_SHARES * share;
    return mine >= PAGE && t->bytes >= 4 * PAGE ? mine / PAGE * PAGE : MAX(mine, 1);
}

/* Both are ready together when mine * read = rest * write + SHARE_NS, in ns a byte. Half of the way there: one
 * measurement may have been disturbed. */
void choice_shared(struct choice *c, const struct choice_ticket *t, uint64_t mine, uint64_t read_ns,
                   uint64_t write_ns)
{
    struct choice_class *k = &c->classes[t->flow][t->size];
    if (!choice_one_by_one(t->flow) || mine == 0 || mine >= t->bytes)
        return;
    double read = (double)(read_ns + 1) / (double)mine,
           write = (double)(write_ns + 1) / (double)(t->bytes - mine);
    double best = (SHARE_NS + (double)t->bytes * write) / (read + write) / (double)t->bytes * CHOICE_SHARES;
    double share = (best + (k->share ? k->share : SHARE_START)) / 2;
    k->share = (uint8_t)(share < SHARE_LEAST ? SHARE_LEAST : share > SHARE_MOST ? SHARE_MOST : share + 0.5);
}
