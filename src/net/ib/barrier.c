/* barrier.c: barriers that the fabric performs, where the verbs library offers them (softib's switch [Hoefler05 3.1]).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/ib.h"

static const struct verbs *verbs_of(struct transport *t)
{
    return &ib_of(t)->device.verbs;
}

static int get(struct transport *t, uint32_t *group)
{
    return verbs_of(t)->barrier.get_id(group) == 0 ? 0 : ERR_AGAIN;
}

static void give_back(struct transport *t, uint32_t group)
{
    verbs_of(t)->barrier.free(group);
}

static void *join(struct transport *t, uint32_t group)
{
    return verbs_of(t)->barrier.join(group);
}

static void enter(struct transport *t, void *member)
{
    verbs_of(t)->barrier.enter(member);
}

static bool over(struct transport *t, void *member)
{
    return verbs_of(t)->barrier.test(member) != 0;
}

static void leave(struct transport *t, void *member)
{
    verbs_of(t)->barrier.leave(member);
}

const struct transport_barrier ib_barrier = {
    .get = get, .give_back = give_back, .join = join, .enter = enter, .over = over, .leave = leave};
