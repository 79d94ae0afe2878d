/* p2p.c: fuzzes the frames that the point-to-point engine receives from another rank: headers,
 * announcements, grants, offers, with posted receives and waiting sends whose cookies the frames may
 * contain. The transport is simulated: gets write to, and puts read from, the memory that the engine
 * names, so that a sanitizer detects a length that the engine should have refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "panic.h"
#include "p2p/engine.h"

enum { FRAME = 256, SMALL = 64, LARGE = 5000, MEMORY = 4 };

static struct net net;
static struct transport transport;
static struct peer peer, *table[2];
static struct p2p *engine;
static char *memory[MEMORY];
static uint8_t fault_bits; /* bit mask of transfers that fail */
static char *payload;

static int fake_send(struct peer *to, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                     size_t len)
{
    (void)to, (void)head, (void)from, (void)word;
    char copy[FRAME];
    FUZZ_CHECK(len <= FRAME);
    if (len)
        memcpy(copy, payload, len);
    return 0;
}
static int fake_reserve(struct peer *to, size_t len, void **payload)
{
    (void)to, (void)len, (void)payload;
    return ERR_AGAIN;
}
static void fake_commit(struct peer *to, const struct frame_header *header, size_t len)
{
    (void)to, (void)header, (void)len;
}
static int fake_put(struct peer *to, const void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    (void)to, (void)remote, (void)key;
    FUZZ_CHECK(mem->handle && len > 0 && memchr(local, 0xee, len) == NULL);
    op->done(op, fault_bits & 1 ? MPI_ERR_OTHER : 0);
    return 0;
}
static int fake_get(struct peer *to, void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    (void)to, (void)remote, (void)key;
    FUZZ_CHECK(mem->handle && len > 0);
    memset(local, 1, len);
    op->done(op, fault_bits & 1 ? MPI_ERR_OTHER : 0);
    return 0;
}
static int fake_register(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                         struct net_key *key)
{
    *mem = (struct net_mem){.address = (uintptr_t)address, .length = len, .handle = t};
    *key = (struct net_key){{77, len}};
    return 0;
}
static void fake_release(struct transport *t, struct net_mem *mem)
{
    (void)t;
    mem->handle = NULL;
}
static int fake_poll(struct transport *t)
{
    (void)t;
    return 0;
}
static struct peer *fake_peer_of(void *arg, struct envelope env)
{
    (void)arg, (void)env;
    return &peer;
}

static void open_world(uint8_t bits)
{
    static const struct transport_ops ops = {.name = "fuzz",
                                             .send = fake_send,
                                             .reserve = fake_reserve,
                                             .commit = fake_commit,
                                             .put = fake_put,
                                             .get = fake_get,
                                             .mem_register = fake_register,
                                             .mem_register_piece = fake_register,
                                             .mem_release = fake_release,
                                             .poll = fake_poll};
    transport = (struct transport){.ops = &ops, .net = &net};
    net = (struct net){.rank = 0, .size = 2, .transports = {&transport}, .ntransports = 1, .peers = table};
    net.doorbell = &net.own_doorbell;
    list_init(&net.stalled);
    list_init(&net.hooks);
    list_init(&net.groups);
    list_init(&net.group_notes);
    if (p2p_open(&net, &engine) != 0)
        abort();
    p2p_on_peer_of(engine, fake_peer_of, NULL);
    table[1] = &peer;
    peer = (struct peer){.ops = &ops, .transport = &transport, .net = &net, .rank = 1};
    peer.caps = (struct transport_caps){.frame_max = FRAME,
                                        .inline_max = 32,
                                        .put = bits & 1,
                                        .get = bits & 2,
                                        .put_ordered = bits & 4,
                                        .last_byte_last = bits & 8,
                                        .cpu_moves = bits & 16};
    list_init(&peer.pending);
    list_init(&peer.stalled_link);
    net.connected(net.deliver_ctx, &peer);
}

static struct envelope make_envelope(int source, int tag)
{
    return (struct envelope){.context = 5, .source = source, .tag = tag};
}

/* Posts two receives and two sends, each with memory of exactly its size, so that a sanitizer detects
 * writes past the end. */
static void post_requests(void)
{
    struct request *r;
    struct dtype *byte = dtype_from_handle(MPI_BYTE);
    for (int i = 0; i < MEMORY; i++)
        memory[i] = calloc(1, i % 2 ? LARGE : SMALL);
    p2p_irecv(engine, memory[0], SMALL, byte, make_envelope(1, 1), &r);
    p2p_irecv(engine, memory[1], LARGE, byte, make_envelope(1, 2), &r);
    p2p_isend(engine, memory[2], SMALL, byte, &peer, make_envelope(0, 3), SEND_SYNCHRONOUS, &r);
    p2p_isend(engine, memory[3], LARGE, byte, &peer, make_envelope(0, 4), SEND_STANDARD, &r);
}

static void fuzz_frames(struct fuzz_in *in)
{
    while (in->left > 0) {
        struct frame_header h;
        size_t len;
        fault_bits = fuzz_u8(in);
        fuzz_bytes(in, &h, sizeof(h));
        payload = fuzz_copy(in, fuzz_u8(in), &len);
        if (h.context == 0)
            h.context = 5;
        net.deliver(net.deliver_ctx, &peer, &h, payload, len);
        net_progress(&net);
        free(payload);
        payload = NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    open_world(fuzz_u8(&in));
    post_requests();
    if (setjmp(fuzz_end) == 0)
        fuzz_frames(&in);
    free(payload);
    payload = NULL;
    p2p_close(engine);
    for (int i = 0; i < MEMORY; i++)
        free(memory[i]);
    return 0;
}
