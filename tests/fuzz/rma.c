/* rma.c: fuzzes the frames of another rank for a window of this rank: puts, gets, accumulates and their
 * answers, locks, epochs, notifications. The window's memory has exactly its size, so that a sanitizer
 * detects accesses outside of it; answers must not exceed a frame.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/rma.h"

#include "base/err.h"
#include "boot/boot.h"
#include "panic.h"
#include "obj/context.h"
#include "rma/window_memory.h"

enum { BYTES = 200, INTO = 48, CONTEXT = 8 };

static struct net net;
static struct transport transport;
static struct peer peer, *table[2], *peers[2];
static const uint32_t node_of[2] = {0, 1};
static struct boot boot = {.rank = 0, .size = 2, .node_of = node_of};
static struct proc proc;
static struct comm comm;
static struct win win;
static struct win_slot slot;
static struct win_target mine;
static struct win_peer *from;
static struct rma_op *op; /* an outstanding get; its answer, which the input may contain, frees it */
static uint64_t cookie;
static char *payload, *into;

static int fake_send(struct peer *to, uint64_t head, uint64_t source, uint64_t word, const void *data,
                     size_t len)
{
    static char copy[RMA_CHUNK_MAX + 64];
    (void)to, (void)head, (void)source, (void)word;
    FUZZ_CHECK(len <= sizeof(copy));
    if (len)
        memcpy(copy, data, len);
    return 0;
}

static void open_world(uint8_t bits)
{
    static const struct transport_ops ops = {.name = "fuzz", .send = fake_send};
    transport = (struct transport){.ops = &ops, .net = &net};
    net = (struct net){.rank = 0, .size = 2, .transports = {&transport}, .ntransports = 1, .peers = table};
    net.doorbell = &net.own_doorbell;
    list_init(&net.stalled);
    list_init(&net.hooks);
    list_init(&net.groups);
    list_init(&net.group_notes);
    proc = (struct proc){.boot = &boot, .net = &net, .size = 2};
    if (p2p_open(&net, &proc.p2p) != 0 || !rma_open(&proc))
        abort();
    table[1] = peers[1] = &peer;
    peer = (struct peer){.ops = &ops, .transport = &transport, .net = &net, .rank = 1};
    peer.caps = (struct transport_caps){.frame_max = RMA_CHUNK_MAX + 64, .inline_max = 32};
    list_init(&peer.pending);
    list_init(&peer.stalled_link);
    comm = (struct comm){.proc = &proc, .context = CONTEXT, .rank = 0, .size = 2, .peers = peers};
    slot = (struct win_slot){0};
    win = (struct win){.proc = &proc, .comm = &comm, .mine = &mine, .my_slot = &slot};
    win.flavor = bits & 1 ? MPI_WIN_FLAVOR_DYNAMIC : MPI_WIN_FLAVOR_CREATE;
    win.shared = bits & 2;
    win.size = BYTES;
    win.memory = calloc(1, BYTES);
    list_init(&win.busy);
    list_init(&win.waiting);
    list_init(&win.watch);
    list_init(&win.seen);
    if (bits & 1)
        win_attach(&win, win.memory, BYTES);
    proc.rma->wins[context_id_of(CONTEXT)] = &win;
}

/* Starts a get that waits for its answer, which a frame of the input may bring. */
static void start_get(void)
{
    struct rma_call c = {.kind = RMA_IS_GET, .win = &win};
    into = calloc(1, INTO);
    c.origin = (struct rma_side){into, INTO, dtype_from_handle(MPI_BYTE)};
    from = calloc(1, sizeof(*from));
    *from = (struct win_peer){.win = &win, .peer = &peer, .rank = 1};
    list_init(&from->busy);
    win.table_size = 8;
    win.table = calloc(win.table_size, sizeof(*win.table));
    win.table[2654435769u & (win.table_size - 1)] = from;
    win.table_used = 1;
    if (operation_create(&c, &c.origin, from, &op) != 0)
        abort();
    op_add_piece(op);
    cookie = op->cookie;
}

static void fuzz_frames(struct fuzz_in *in)
{
    while (in->left > 0) {
        struct frame_header h;
        size_t len;
        fuzz_bytes(in, &h, sizeof(h));
        payload = fuzz_copy(in, fuzz_u8(in), &len);
        h.context = CONTEXT;
        h.source = 1;
        if (h.flags == RMA_REPLY && h.word == 0)
            h.word = cookie;
        if (win.flavor == MPI_WIN_FLAVOR_DYNAMIC && h.flags == RMA_PUT && h.tag == 0)
            h.word += (uintptr_t)win.memory;
        rma_handle_frame(proc.rma, &peer, &h, payload, len);
        free(payload);
        payload = NULL;
    }
}

static void close_world(void)
{
    list_init(&win.waiting);
    if (ids_find(&proc.rma->ids, cookie))
        objmem_free(op);
    watch_close(&win);
    win_peers_close(&win);
    free(win.regions);
    free(win.memory);
    proc.rma->wins[context_id_of(CONTEXT)] = NULL;
    proc.rma_closing(&proc);
    p2p_close(proc.p2p);
    free(into);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    open_world(fuzz_u8(&in));
    start_get();
    if (setjmp(fuzz_end) == 0)
        fuzz_frames(&in);
    free(payload);
    payload = NULL;
    close_world();
    return 0;
}
