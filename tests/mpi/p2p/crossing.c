/* crossing.c: many messages of all sizes between all ranks at once, sent and received in random order, by
 * receives with and without wildcards, with larger buffers, contiguous and with gaps; announcements,
 * offers and data cross all the time. Every message must match the receive that MPI's order requires, with
 * its bytes and no others. Receives without a sender are cancelled in between. All matches are computed
 * beforehand: messages of one source match in order, so each receive that names the source matches the
 * oldest matching message that is left.
 *
 * ranks: 3 2 4
 * also: FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=getcqe
 * also: FISHPLATE_RENDEZVOUS=get
 * also: FISHPLATE_RENDEZVOUS=putnr
 * also: FISHPLATE_RENDEZVOUS=put
 * also: FISHPLATE_RENDEZVOUS=split
 * also: FISHPLATE_RENDEZVOUS=r3
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_EAGER_MAX=64 FISHPLATE_SHM_RING=64k FISHPLATE_LAB=SHM_FRAME=1k
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_PROGRESS=thread
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum {
    PHASES = 8,
    EACH = 10,
    TAGS = 3,
    RANKS_MAX = 8,
    INTS_MAX = 50000,
    ALL = RANKS_MAX * EACH,
    NOBODY = 77
};

static const int lengths[] = {1, 2, 255, 256, 1024, 4095, 4096, 4097, 5000, 16384, INTS_MAX};

/* Draws the same random numbers in every rank. */
static unsigned random_below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}
static unsigned own_seed; /* seed of this rank's own random numbers */

struct message {
    int tag, length; /* in ints */
};
struct receive {
    int source, tag, room, holes;
    int partner; /* number of the matching message; -1: unknown, -2: none (cancelled) */
    int *buf;
    MPI_Request request;
};

static MPI_Datatype holey; /* an int followed by a gap */

static void plan_message(int phase, int from, int to, struct message *m)
{
    unsigned seed = (unsigned)(phase * 1009 + from * 101 + to * 11 + 1);
    for (int i = 0; i < EACH; i++) {
        m[i].tag = (int)random_below(&seed, TAGS);
        m[i].length = lengths[random_below(&seed, sizeof(lengths) / sizeof(lengths[0]))];
    }
}

static int message_value(int from, int to, int number, int i)
{
    return i == 0 ? number << 16 | from << 8 | to : (from * 31 + number) * 1000003 + i;
}

static int *make_send_buffer(int from, int to, int number, int length, int holes)
{
    int *buf = malloc((size_t)length * sizeof(int) * (holes ? 2 : 1));
    for (int i = 0; i < length; i++)
        buf[holes ? 2 * i : i] = message_value(from, to, number, i);
    return buf;
}

static void post_receive(struct receive *r)
{
    size_t n = (size_t)r->room * (r->holes ? 2 : 1);
    r->buf = malloc(n * sizeof(int));
    memset(r->buf, 0xdd, n * sizeof(int));
    MPI_Irecv(r->buf, r->room, r->holes ? holey : MPI_INT, r->source, r->tag, MPI_COMM_WORLD, &r->request);
}

/* Plans one receive for each message of this source, in another order; `partner` follows from MPI's
 * matching order. */
static void plan_receives(int source, const struct message *m, struct receive *r)
{
    int left[EACH], taken[EACH] = {0};
    for (int i = 0; i < EACH; i++)
        left[i] = i;
    for (int n = EACH; n > 0; n--, r++) {
        int pick = (int)random_below(&own_seed, (unsigned)n), want = m[left[pick]].tag;
        *r = (struct receive){
            .source = source, .tag = random_below(&own_seed, 6) ? want : MPI_ANY_TAG, .partner = -1};
        for (int i = 0; r->partner < 0; i++)
            if (!taken[i] && (r->tag == MPI_ANY_TAG || r->tag == m[i].tag))
                r->partner = i;
        taken[r->partner] = 1;
        for (int i = 0, k = 0; i < EACH; i++)
            if (!taken[i])
                left[k++] = i;
        r->room =
            m[r->partner].length + (random_below(&own_seed, 2) ? 0 : (int)random_below(&own_seed, 5000));
        r->holes = random_below(&own_seed, 5) == 0;
    }
}

static void check_receive(struct receive *r, const MPI_Status *s, struct message plans[][EACH])
{
    int count, from = s->MPI_SOURCE, wrong = 0, step = r->holes ? 2 : 1, number = r->buf[0] >> 16;
    MPI_Get_count(s, r->holes ? holey : MPI_INT, &count);
    if (r->partner >= 0)
        EXPECT_EQ(number, r->partner);
    if (number < 0 || number >= EACH) {
        EXPECT(number >= 0 && number < EACH);
        return;
    }
    EXPECT_EQ(s->MPI_TAG, plans[from][number].tag);
    EXPECT_EQ(count, plans[from][number].length);
    for (int i = 0; i < r->room; i++) {
        int wanted = i < count ? message_value(from, mpitest_rank, number, i) : (int)0xdddddddd;
        wrong += r->buf[i * step] != wanted || (r->holes && r->buf[i * step + 1] != (int)0xdddddddd);
    }
    EXPECT_EQ(wrong, 0);
}

/* Cancels a receive without a sender; its buffer must not change. */
static void cancel_unmatched_receive(void)
{
    struct receive r = {
        .source = (int)random_below(&own_seed, (unsigned)mpitest_size), .tag = NOBODY, .room = INTS_MAX};
    MPI_Status s;
    int flag = 0, wrong = 0;
    post_receive(&r);
    MPI_Test(&r.request, &flag, &s);
    EXPECT(!flag);
    MPI_Cancel(&r.request);
    MPI_Wait(&r.request, &s);
    MPI_Test_cancelled(&s, &flag);
    EXPECT(flag);
    for (int i = 0; i < r.room; i++)
        wrong += r.buf[i] != (int)0xdddddddd;
    EXPECT_EQ(wrong, 0);
    free(r.buf);
}

/* Posts receives and sends in random order, with tests of completion in between. */
static void run_phase(int phase, int any_source)
{
    static struct receive receives[ALL];
    static struct message in[RANKS_MAX][EACH], out[RANKS_MAX][EACH];
    static MPI_Request sends[ALL];
    static int *bufs[ALL];
    int posted[RANKS_MAX] = {0}, sent[RANKS_MAX] = {0}, nsends = 0, total = mpitest_size * EACH, done = 0;
    own_seed = (unsigned)(phase * 7919 + mpitest_rank * 104729 + 3);
    for (int r = 0; r < mpitest_size; r++) {
        plan_message(phase, r, mpitest_rank, in[r]);
        plan_message(phase, mpitest_rank, r, out[r]);
        plan_receives(r, in[r], &receives[r * EACH]);
    }
    for (int i = 0; any_source && i < total; i++) {
        receives[i].source = MPI_ANY_SOURCE;
        receives[i].tag = MPI_ANY_TAG;
        receives[i].room = INTS_MAX;
        receives[i].partner = -1;
    }
    while (done < 2 * total) {
        int r = (int)random_below(&own_seed, (unsigned)mpitest_size), flag;
        if (random_below(&own_seed, 2) && posted[r] < EACH) {
            post_receive(&receives[r * EACH + posted[r]++]);
            done++;
        } else if (sent[r] < EACH) {
            const struct message *m = &out[r][sent[r]];
            int holes = random_below(&own_seed, 5) == 0;
            bufs[nsends] = make_send_buffer(mpitest_rank, r, sent[r]++, m->length, holes);
            (random_below(&own_seed, 4) ? MPI_Isend : MPI_Issend)(
                bufs[nsends], m->length, holes ? holey : MPI_INT, r, m->tag, MPI_COMM_WORLD, &sends[nsends]);
            nsends++;
            done++;
        }
        if (nsends && random_below(&own_seed, 3) == 0)
            MPI_Test(&sends[random_below(&own_seed, (unsigned)nsends)], &flag, MPI_STATUS_IGNORE);
        if (!any_source && random_below(&own_seed, 40) == 0)
            cancel_unmatched_receive();
    }
    for (int i = 0; i < total; i++) {
        MPI_Status s;
        MPI_Wait(&receives[i].request, &s);
        check_receive(&receives[i], &s, in);
        free(receives[i].buf);
    }
    MPI_Waitall(nsends, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < nsends; i++)
        free(bufs[i]);
}

/* Blocking calls around a ring of ranks, with receives posted before or after the message arrives. */
static void test_blocking_ring(int phase)
{
    int to = (mpitest_rank + 1) % mpitest_size, from = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    for (int i = 0; i < 10; i++) {
        struct message plans[RANKS_MAX][EACH] = {0};
        struct receive r = {.source = from, .tag = 5, .room = lengths[(i + phase) % 11], .partner = i};
        MPI_Status s;
        int *buf = make_send_buffer(mpitest_rank, to, i, r.room, 0);
        plans[from][i] = (struct message){.tag = 5, .length = r.room};
        r.buf = malloc((size_t)r.room * sizeof(int));
        MPI_Sendrecv(buf, r.room, MPI_INT, to, 5, r.buf, r.room, MPI_INT, from, 5, MPI_COMM_WORLD, &s);
        check_receive(&r, &s, plans);
        if (mpitest_rank % 2 == 0 && (mpitest_size % 2 == 0 || mpitest_rank > 0)) {
            MPI_Send(buf, r.room, MPI_INT, to, 5, MPI_COMM_WORLD);
            MPI_Recv(r.buf, r.room, MPI_INT, from, 5, MPI_COMM_WORLD, &s);
        } else {
            MPI_Recv(r.buf, r.room, MPI_INT, from, 5, MPI_COMM_WORLD, &s);
            MPI_Send(buf, r.room, MPI_INT, to, 5, MPI_COMM_WORLD);
        }
        check_receive(&r, &s, plans);
        free(r.buf);
        free(buf);
    }
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &holey);
    MPI_Type_commit(&holey);
    for (int phase = 0; phase < PHASES; phase++) {
        run_phase(phase, phase % 4 == 3);
        if (phase % 4 == 3)
            MPI_Barrier(MPI_COMM_WORLD); /* the following messages must not match earlier wildcard receives */
        test_blocking_ring(phase);
    }
    MPI_Type_free(&holey);
    return mpitest_end();
}
