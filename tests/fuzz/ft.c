/* ft.c: fuzzes the notifications of faults: frames that revoke communicators or belong to agreements, from
 * any peer and about any communicator, and the page of death notices, which every process of the host can
 * write; while this process revokes, agrees, shrinks, and creates and frees communicators. The network is
 * simulated. Nothing is sent to dead processes, only members revoke a communicator, and only processes
 * named by a notice are dead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#include <pthread.h>

#include "base/hash.h"
#include "boot/boot.h"
#include "boot/notice.h"
#include "ft/round.h"
#include "net/lost.h"
#include "obj/context.h"
#include "obj/errhandler.h"
#include "obj/fault.h"
#include "p2p/peer_death.h"
#include "panic.h"

enum { SIZE = 4, FRAME = 4096, COMMS = 3, STEPS_MAX = 60, ROOM = 4096 };
static const char job[] = "fuzz-1";

static struct net net;
static struct transport transport;
static struct peer peer[SIZE], *table[SIZE];
static const uint32_t node_of[SIZE];
static struct boot boot = {.rank = 0, .size = SIZE, .node_of = node_of};
static struct notice_page *page;
static struct proc proc;
/* Communicators of all ranks, of the even ranks, and of the first two ranks; the input creates and frees
 * the last one. */
static struct comm *comms[COMMS];
static uint32_t noticed_dead;  /* bit mask of the ranks that a notice names */
static bool may_revoke[COMMS]; /* a member or this process has revoked the communicator */
static char *payload;
static int flags[STEPS_MAX];
static MPI_Comm handles[STEPS_MAX];
static struct request *requests[STEPS_MAX];

static int fake_send(struct peer *to, uint64_t head, uint64_t from, uint64_t word, const void *data,
                     size_t len)
{
    static char copy[FRAME];
    (void)head, (void)from, (void)word;
    FUZZ_CHECK(len <= sizeof(copy) && !net_is_lost(&net, to->rank));
    if (len)
        memcpy(copy, data, len);
    return 0;
}
static int fake_poll(struct transport *t)
{
    (void)t;
    return 0;
}
static void report_lost_peer(struct transport *t, struct peer *gone)
{
    (void)t;
    FUZZ_CHECK(noticed_dead >> gone->rank & 1);
}

static struct comm *create_comm(int which, const uint32_t *numbers, int n)
{
    struct group *g;
    struct comm *c;
    const uint32_t ids[2] = {20 + (uint32_t)which, 0};
    if (group_from_table(0, numbers, n, &g) != 0 || comm_alloc(&proc, g, NULL, &c) != 0)
        abort();
    c->errhandler = errhandler_retain(errhandler_initial);
    comms[which] = c;
    if (comm_activate(c, ids) != 0)
        abort();
    return c;
}

static void register_comm(int which)
{
    static const uint32_t all[] = {0, 1, 2, 3}, even[] = {0, 2}, two[] = {1, 0};
    static const struct {
        const uint32_t *numbers;
        int n;
    } members[COMMS] = {{all, 4}, {even, 2}, {two, 2}};
    create_comm(which, members[which].numbers, members[which].n);
}

/* Replaces the thread that rings the doorbell for a new notice: this program polls the page itself, and
 * starting and joining a thread for each input took most of the time (on a loaded machine 100 times as
 * long as the input). */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg)
{
    (void)attr, (void)body, (void)arg;
    *thread = pthread_self();
    return 0;
}
int __wrap_pthread_tryjoin_np(pthread_t thread, void **result);
int __wrap_pthread_tryjoin_np(pthread_t thread, void **result)
{
    (void)thread, (void)result;
    return 0;
}

/* Fills the page almost completely with the deaths of other processes, so that the next notices are at its
 * end. */
static void fill_page(void)
{
    const uint64_t world = hash_text(HASH_START, "another job");
    for (uint32_t i = 0; i < ROOM - 2; i++) {
        page->notices[i].rank = 1;
        page->notices[i].world = world;
        atomic_store(&page->notices[i].full, 1);
    }
    atomic_store(&page->reserved, ROOM - 2);
}

static void open_world(uint8_t bits)
{
    static const struct transport_ops ops = {
        .name = "fuzz", .send = fake_send, .poll = fake_poll, .lost = report_lost_peer};
    page =
        calloc(1, sizeof(*page)); /* allocated separately, so that a sanitizer detects reads past its end */
    if (!page)
        abort();
    atomic_store(&page->room, ROOM);
    if (bits & 1)
        fill_page();
    boot.notices = page;
    transport = (struct transport){.ops = &ops, .net = &net};
    net = (struct net){.rank = 0,
                       .size = SIZE,
                       .boot = &boot,
                       .world = hash_text(HASH_START, job),
                       .transports = {&transport},
                       .ntransports = 1,
                       .nouter = 1,
                       .peers = table};
    net.doorbell = &net.own_doorbell;
    list_init(&net.stalled);
    list_init(&net.hooks);
    list_init(&net.groups);
    list_init(&net.group_notes);
    proc = (struct proc){.boot = &boot, .net = &net, .size = SIZE};
    list_init(&proc.assemblies);
    if (p2p_open(&net, &proc.p2p) != 0 || net_lost_open(&net) != 0)
        abort();
    p2p_on_fault(proc.p2p, comm_check_envelope, comm_member_died, &proc);
    for (uint32_t i = 0; i < SIZE; i++) {
        peer[i] = (struct peer){.ops = &ops, .transport = &transport, .net = &net, .rank = i};
        peer[i].caps = (struct transport_caps){.frame_max = FRAME, .inline_max = 32};
        list_init(&peer[i].pending);
        list_init(&peer[i].stalled_link);
        table[i] = &peer[i];
    }
    context_ids_init(&proc);
    if (ft_open(&proc) != 0)
        abort();
    noticed_dead = 0;
    memset(may_revoke, 0, sizeof(may_revoke));
    register_comm(0);
    register_comm(1);
    proc.world = comms[0];
}

/* Delivers a frame with a plausible header, unless the input selects another one. */
static void deliver_frame(struct fuzz_in *in, uint8_t what)
{
    struct frame_header h;
    size_t len;
    struct peer *from = &peer[1 + (what >> 4) % (SIZE - 1)];
    fuzz_bytes(in, &h, sizeof(h));
    payload = fuzz_copy(in, fuzz_u8(in), &len);
    h.kind = P2P_FRAME_FAULT;
    if (h.context >> 24 != 0x55)
        h.context = context_of_id(20 + h.context % COMMS);
    if (h.flags > 1)
        h.flags = FT_AGREE;
    if (h.tag >> 24 != 0x55)
        h.tag %= 4;
    const uint32_t id = context_id_of(h.context);
    if (h.flags == FT_REVOKE && id >= 20 && id < 20 + COMMS)
        may_revoke[id - 20] = true;
    net.deliver(net.deliver_ctx, from, &h, payload, len);
    free(payload);
    payload = NULL;
}

/* Writes to the page as another process may. The page has no file, so it cannot grow. */
static void write_notice(struct fuzz_in *in, uint8_t what)
{
    if (what & 32) {
        if (notice_add(page, -1, notice_hash_job(job), what >> 6))
            noticed_dead |= 1u << (what >> 6);
    } else {
        struct notice *n = &page->notices[atomic_load(&page->reserved) % ROOM];
        fuzz_bytes(in, n, sizeof(*n));
        if (what & 128)
            n->world = hash_text(HASH_START, job);
        if (n->rank < SIZE)
            noticed_dead |= 1u << n->rank;
        atomic_fetch_add(&page->reserved, 1);
        atomic_fetch_add(&page->published, 1);
    }
    net_progress(&net);
}

static void run_step(struct fuzz_in *in, int step)
{
    const uint8_t what = fuzz_u8(in), which = (what >> 3) % COMMS;
    struct comm *c = comms[which];
    switch (what % 8) {
    case 0:
    case 1:
    case 2:
        deliver_frame(in, what);
        break;
    case 3:
        write_notice(in, what);
        break;
    case 4:
        if (c)
            ft_agree_start(c, &flags[step], &requests[step]);
        break;
    case 5:
        if (c)
            ft_shrink_start(c, &handles[step], &requests[step]);
        break;
    case 6:
        may_revoke[which] = true;
        if (c)
            ft_revoke(c);
        break;
    default:
        if (!comms[2])
            register_comm(2);
    }
}

static void check_invariants(void)
{
    for (int i = 0; i < COMMS; i++)
        FUZZ_CHECK(!comms[i] || !comm_is_revoked(comms[i]) || may_revoke[i]);
    for (uint32_t i = 0; i < SIZE; i++)
        FUZZ_CHECK(!net_is_lost(&net, i) || noticed_dead >> i & 1);
    FUZZ_CHECK(!net_is_lost(&net, net.rank));
}

static void close_world(void)
{
    proc.ft_closing(&proc);
    for (int i = 0; i < STEPS_MAX; i++) {
        if (requests[i])
            request_free(requests[i]);
        requests[i] = NULL;
    }
    net_lost_close(&net);
    p2p_close(proc.p2p);
    for (uint32_t i = 0; i < CONTEXT_IDS; i++)
        if (proc.comms[i])
            comm_release(proc.comms[i]);
    free(proc.context_epochs);
    free(net.revoked_peer);
    memset(comms, 0, sizeof(comms));
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    open_world(fuzz_u8(&in));
    if (setjmp(fuzz_end) == 0)
        for (int i = 0; i < STEPS_MAX && in.left > 0; i++) {
            run_step(&in, i);
            check_invariants();
        }
    free(payload);
    payload = NULL;
    close_world();
    return 0;
}
