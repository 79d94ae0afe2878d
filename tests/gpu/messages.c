/* messages.c: every call that sends or receives a message, between all kinds of memory, in several sizes
 * and datatypes. Each receive buffer is compared byte by byte with the result of MPI_Unpack of the same
 * data in host memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"

#define TAG         7
#define GUARD       64 /* bytes before and after each buffer that must not change */
#define MESSAGE_MAX 1200000

static int rank, size, errors;
static unsigned seeds;

enum layout { BYTES, COLUMNS, BLOCKS, LAYOUTS };
static const char *const layouts[LAYOUTS] = {"bytes", "columns", "blocks"};

/* Creates a datatype whose `count` elements have about `bytes` bytes of data. */
static MPI_Datatype make_type(enum layout layout, size_t bytes, int *count)
{
    MPI_Datatype type;
    const int lengths[4] = {3, 1, 4, 2}, places[4] = {0, 5, 7, 13};
    switch (layout) {
    case COLUMNS:
        *count = 1;
        MPI_Type_vector((int)(bytes / 12 + 1), 3, 5, MPI_INT, &type);
        break;
    case BLOCKS:
        *count = (int)(bytes / 40 + 1);
        MPI_Type_indexed(4, lengths, places, MPI_INT, &type);
        break;
    default:
        *count = (int)bytes;
        MPI_Type_contiguous(1, MPI_BYTE, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

/* One message from rank `from` to rank `to` (from == to: on MPI_COMM_SELF). */
struct message {
    const void *out;
    void *in;
    int count, from, to;
    MPI_Datatype type;
};

typedef void call(const struct message *m);

static void test_blocking(const struct message *m)
{
    if (rank == m->from)
        MPI_Send(m->out, m->count, m->type, m->to, TAG, MPI_COMM_WORLD);
    if (rank == m->to)
        MPI_Recv(m->in, m->count, m->type, m->from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void test_synchronous(const struct message *m)
{
    if (rank == m->from)
        MPI_Ssend(m->out, m->count, m->type, m->to, TAG, MPI_COMM_WORLD);
    if (rank == m->to) {
        MPI_Status status;
        int bytes, all;
        MPI_Probe(m->from, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        MPI_Type_size(m->type, &all);
        errors += bytes != all * m->count;
        MPI_Recv(m->in, m->count, m->type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void test_nonblocking(const struct message *m)
{
    MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == m->to)
        MPI_Irecv(m->in, m->count, m->type, m->from, TAG, MPI_COMM_WORLD, &q[0]);
    if (rank == m->from)
        MPI_Isend(m->out, m->count, m->type, m->to, TAG, MPI_COMM_WORLD, &q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
}

static void test_matched(const struct message *m)
{
    MPI_Request q = MPI_REQUEST_NULL;
    if (rank == m->from)
        MPI_Issend(m->out, m->count, m->type, m->to, TAG, MPI_COMM_WORLD, &q);
    if (rank == m->to) {
        MPI_Message message;
        MPI_Mprobe(m->from, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(m->in, m->count, m->type, &message, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void test_persistent(const struct message *m)
{
    MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int n = 0;
    if (rank == m->to)
        MPI_Recv_init(m->in, m->count, m->type, m->from, TAG, MPI_COMM_WORLD, &q[n++]);
    if (rank == m->from)
        MPI_Send_init(m->out, m->count, m->type, m->to, TAG, MPI_COMM_WORLD, &q[n++]);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Startall(n, q);
        MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
    }
    while (n > 0)
        MPI_Request_free(&q[--n]);
}

static void test_buffered(const struct message *m)
{
    if (rank == m->from)
        MPI_Bsend(m->out, m->count, m->type, m->to, TAG, MPI_COMM_WORLD);
    if (rank == m->to)
        MPI_Recv(m->in, m->count, m->type, m->from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void test_partitioned(const struct message *m)
{
    MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const int parts = m->count % 2 == 0 ? 2 : 1;
    if (rank == m->to)
        MPI_Precv_init(m->in, 1, m->count, m->type, m->from, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
    if (rank == m->from)
        MPI_Psend_init(m->out, parts, m->count / parts, m->type, m->to, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &q[1]);
    for (int i = 0; i < 2; i++)
        if (q[i] != MPI_REQUEST_NULL)
            MPI_Start(&q[i]);
    for (int i = parts - 1; i >= 0 && rank == m->from; i--)
        MPI_Pready(i, q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        if (q[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&q[i]);
}

/* Both ranks send at the same time and check what they receive. */
static void test_exchange(const struct message *m)
{
    const int peer = rank == m->from ? m->to : m->from;
    if (rank == m->from || rank == m->to)
        MPI_Sendrecv(m->out, m->count, m->type, peer, TAG, m->in, m->count, m->type, peer, TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const struct {
    const char *name;
    call *run;
    int both; /* both ranks send and receive */
} calls[] = {
    {"blocking", test_blocking, 0},       {"synchronous", test_synchronous, 0},
    {"nonblocking", test_nonblocking, 0}, {"matched", test_matched, 0},
    {"persistent", test_persistent, 0},   {"buffered", test_buffered, 0},
    {"partitioned", test_partitioned, 0}, {"exchange", test_exchange, 1},
};
#define CALLS (sizeof(calls) / sizeof(*calls))

static MPI_Aint buffer_span(MPI_Datatype type, int count)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    return count ? true_lb + true_extent + (count - 1) * extent : 0;
}

static void check_receive_buffer(const struct area *in, unsigned before, unsigned sent,
                                 const struct message *m, const char *what)
{
    char *wanted = malloc(in->size), *got = malloc(in->size), *data = malloc(in->size), *packed;
    int bytes, position = 0;
    area_pattern(wanted, in->size, before);
    area_pattern(data, in->size, sent);
    MPI_Pack_size(m->count, m->type, MPI_COMM_SELF, &bytes);
    packed = malloc((size_t)bytes + 1);
    MPI_Pack(data + GUARD, m->count, m->type, packed, bytes, &position, MPI_COMM_SELF);
    position = 0;
    MPI_Unpack(packed, bytes, &position, wanted + GUARD, m->count, m->type, MPI_COMM_SELF);
    area_read(in, 0, got, in->size);
    for (size_t i = 0; i < in->size; i++)
        if (got[i] != wanted[i]) {
            printf("rank %d: %s: byte %zu of %zu is 0x%02x, expected 0x%02x\n", rank, what, i, in->size,
                   (unsigned char)got[i], (unsigned char)wanted[i]);
            errors++;
            break;
        }
    free(wanted);
    free(got);
    free(data);
    free(packed);
}

static void test_call(size_t c, enum area_kind from, enum area_kind to, enum layout layout, size_t bytes)
{
    struct message m = {.from = 0, .to = size - 1};
    char what[128];
    m.type = make_type(layout, bytes, &m.count);
    const size_t room = (size_t)buffer_span(m.type, m.count) + 2 * GUARD;
    const unsigned sent = ++seeds, before = ++seeds;
    struct area out = area_alloc(from, room), in = area_alloc(to, room);
    area_fill(&out, sent);
    area_fill(&in, before);
    m.out = out.at + GUARD;
    m.in = in.at + GUARD;
    snprintf(what, sizeof(what), "%s, %s to %s, %s, %zu bytes", calls[c].name, area_names[from],
             area_names[to], layouts[layout], bytes);
    calls[c].run(&m);
    if (rank == m.to || (calls[c].both && rank == m.from))
        check_receive_buffer(&in, before, sent, &m, what);
    area_free(&out);
    area_free(&in);
    MPI_Type_free(&m.type);
}

/* MPI_Sendrecv_replace, MPI_Pack and MPI_Unpack on device memory, also in external32. */
static void test_replace_and_pack(enum area_kind kind, size_t bytes)
{
    struct message m = {.from = 0, .to = size - 1};
    m.type = make_type(COLUMNS, bytes, &m.count);
    const size_t room = (size_t)buffer_span(m.type, m.count) + 2 * GUARD;
    const unsigned seed = ++seeds, packing = ++seeds;
    struct area a = area_alloc(kind, room), packed = area_alloc(kind, 2 * bytes + 100),
                b = area_alloc(kind, room);
    int position = 0;
    area_fill(&a, seed + (unsigned)rank * 1000);
    area_fill(&b, packing);
    MPI_Pack(a.at + GUARD, m.count, m.type, packed.at, (int)packed.size, &position, MPI_COMM_WORLD);
    position = 0;
    MPI_Unpack(packed.at, (int)packed.size, &position, b.at + GUARD, m.count, m.type, MPI_COMM_WORLD);
    check_receive_buffer(&b, packing, seed + (unsigned)rank * 1000, &m, "pack and unpack");
    MPI_Aint at = 0;
    area_fill(&b, packing);
    MPI_Pack_external("external32", a.at + GUARD, m.count, m.type, packed.at, (MPI_Aint)packed.size, &at);
    at = 0;
    MPI_Unpack_external("external32", packed.at, (MPI_Aint)packed.size, &at, b.at + GUARD, m.count, m.type);
    check_receive_buffer(&b, packing, seed + (unsigned)rank * 1000, &m, "pack and unpack in external32");
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Sendrecv_replace(a.at + GUARD, m.count, m.type, next, TAG, previous, TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    check_receive_buffer(&a, seed + (unsigned)rank * 1000, seed + (unsigned)previous * 1000, &m,
                         "sendrecv_replace");
    area_free(&a);
    area_free(&b);
    area_free(&packed);
    MPI_Type_free(&m.type);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 8, 5000, 100000, MESSAGE_MAX};
    char *room = malloc(2 * MESSAGE_MAX);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    MPI_Buffer_attach(room, 2 * MESSAGE_MAX);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (int from = 0; from < AREA_KINDS; from++) {
            for (int to = 0; to < AREA_KINDS; to++)
                for (size_t c = 0; c < CALLS; c++) {
                    const int layout = (int)(seeds / 2 % LAYOUTS);
                    if ((c + (size_t)from + (size_t)to + s) % 4 == 0)
                        if (size > 1 || (calls[c].run != test_blocking && calls[c].run != test_synchronous))
                            test_call(c, (enum area_kind)from, (enum area_kind)to, (enum layout)layout,
                                      sizes[s]);
                }
            test_replace_and_pack((enum area_kind)from, sizes[s]);
        }
    MPI_Buffer_detach(&(char *){NULL}, &(int){0});
    MPI_Finalize();
    free(room);
    return errors ? 1 : 0;
}
