/* barrier.c: barriers that the fabric performs, where the verbs library offers them: in softib's switch, and by the wires of
 * its barrier network [Hoefler05 3.1, 3.2].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/ib.h"

static const struct verbs_barrier *verbs_of(const struct transport_barrier *b)
{
    return container_of(b, struct ib_barrier, base)->verbs;
}

static int get(const struct transport_barrier *b, uint32_t *group)
{
    return verbs_of(b)->get_id(group) == 0 ? 0 : ERR_AGAIN;
}

static void give_back(const struct transport_barrier *b, uint32_t group)
{
    verbs_of(b)->free(group);
}

static void *join(const struct transport_barrier *b, uint32_t group)
{
    return verbs_of(b)->join(group);
}

static void enter(const struct transport_barrier *b, void *member)
{
    verbs_of(b)->enter(member);
}

static bool over(const struct transport_barrier *b, void *member)
{
    return verbs_of(b)->test(member) != 0;
}

static void leave(const struct transport_barrier *b, void *member)
{
    verbs_of(b)->leave(member);
}

static const struct transport_barrier *open_one(struct ib_barrier *b, const struct verbs_barrier *verbs)
{
    if (!verbs->get_id)
        return NULL;
    *b = (struct ib_barrier){
        .base =
            {.get = get, .give_back = give_back, .join = join, .enter = enter, .over = over, .leave = leave},
        .verbs = verbs};
    return &b->base;
}

void ib_barriers_open(struct ib *ib)
{
    ib->base.barrier = open_one(&ib->barrier, &ib->device.verbs.barrier);
    ib->base.wires = open_one(&ib->wires, &ib->device.verbs.wires);
}
