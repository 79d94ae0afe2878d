/* paths.c: the protocol of large messages in GPU memory between two ranks, as the library's counters show,
 * and the unmapping of memory that its owner has freed. Arguments: the expected protocols of GPU memory to
 * GPU memory, GPU to host, host to GPU, pool to GPU, VMM to GPU, VMM pieces to GPU: mapget, mapput, r3,
 * getcqe, rput or staged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "area.h"
#include "counters.h"

#define BYTES       3000000
#define TURNS       10
#define ALLOCATIONS 300 /* allocations that are sent once and freed */

enum { MAPGET, MAPPUT, R3, GETCQE, RPUT, STAGED, PROTOCOLS };
static const char *const protocols[PROTOCOLS] = {"mapget", "mapput", "r3", "getcqe", "rput", "staged"};
static MPI_T_pvar_handle counts[PROTOCOLS];

/* Sums the counters of both ranks: depending on the protocol, sender or receiver counts a message. */
static void read_counts(unsigned long long out[PROTOCOLS])
{
    unsigned long long mine[PROTOCOLS];
    for (int i = 0; i < PROTOCOLS; i++)
        mine[i] = read_counter(counts[i]);
    MPI_Allreduce(mine, out, PROTOCOLS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
}

/* Rank 0 sends, rank 1 receives and compares. */
static void transfer_and_compare(const struct area *a, unsigned seed)
{
    char *expected = malloc(a->size), *seen = malloc(a->size);
    if (mpitest_rank == 0) {
        area_fill(a, seed);
        MPI_Send(a->at, (int)a->size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(a->at, (int)a->size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        area_pattern(expected, a->size, seed);
        area_read(a, 0, seen, a->size);
        EXPECT(memcmp(expected, seen, a->size) == 0);
    }
    free(expected);
    free(seen);
}

static void expect_protocol(enum area_kind from, enum area_kind to, const char *protocol)
{
    unsigned long long before[PROTOCOLS], after[PROTOCOLS];
    struct area a = area_alloc(mpitest_rank == 0 ? from : to, BYTES);
    read_counts(before);
    for (unsigned turn = 0; turn < TURNS; turn++)
        transfer_and_compare(&a, turn);
    read_counts(after);
    area_free(&a);
    for (int i = 0; i < PROTOCOLS; i++) {
        const unsigned long long expected = strcmp(protocol, protocols[i]) == 0 ? TURNS : 0;
        if (after[i] - before[i] != expected && mpitest_rank == 0)
            printf("%s to %s: %llu messages by %s, expected %llu\n", area_names[from], area_names[to],
                   after[i] - before[i], protocols[i], expected);
        EXPECT_EQ(after[i] - before[i], expected);
    }
}

/* Staged messages with lengths around the size of a chunk and of the staging buffer. */
static void test_lengths_around_chunks(void)
{
    static const size_t lengths[] = {262143, 262144, 262145, 524287, 524288, 524289, 786432, 1048583};
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        struct area a = area_alloc(AREA_POOL, lengths[i]);
        transfer_and_compare(&a, i);
        area_free(&a);
        a = area_alloc(AREA_VMM_PRIVATE, lengths[i]);
        transfer_and_compare(&a, i);
        area_free(&a);
    }
}

/* Mappings are closed when the owner reuses their memory, and their number is bounded. */
static void test_freed_memory_is_unmapped(void)
{
    MPI_T_pvar_handle opened = counter_open("gpu_imports_opened"),
                      closed = counter_open("gpu_imports_closed");
    for (unsigned turn = 0; turn < ALLOCATIONS; turn++) {
        struct area a = area_alloc(AREA_DEVICE, 20000 + turn * 4096);
        transfer_and_compare(&a, turn);
        area_free(&a);
    }
    EXPECT(read_counter(opened) - read_counter(closed) <= 32);
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 1;
    counters_begin();
    mpitest_begin(&argc, &argv);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    counts[MAPGET] = counter_open("p2p_rendezvous_mapget");
    counts[MAPPUT] = counter_open("p2p_rendezvous_mapput");
    counts[R3] = counter_open("p2p_rendezvous_r3");
    counts[GETCQE] = counter_open("p2p_rendezvous_getcqe");
    counts[RPUT] = counter_open("p2p_rendezvous_rput");
    counts[STAGED] = counter_open("p2p_rendezvous_staged");
    expect_protocol(AREA_DEVICE, AREA_DEVICE, argv[1]);
    expect_protocol(AREA_DEVICE, AREA_HOST, argv[2]);
    expect_protocol(AREA_HOST, AREA_DEVICE, argv[3]);
    expect_protocol(AREA_POOL, AREA_DEVICE, argv[4]);
    expect_protocol(AREA_VMM, AREA_DEVICE, argv[5]);
    expect_protocol(AREA_VMM_PIECES, AREA_DEVICE, argv[6]);
    test_lengths_around_chunks();
    test_freed_memory_is_unmapped();
    const int rc = mpitest_end();
    counters_end();
    return rc;
}
