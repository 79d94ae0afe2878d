/* deaths.c: a rank is killed while a GPU copies between its memory and that of another rank. The other
 * rank gets the message or an error, and the living ranks exchange GPU memory afterwards. softcuda delays
 * copies as SOFTCUDA_LAZY requires. Argument `staged`: a rank is killed while messages by STAGED move between
 * two nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#include "area.h"
#include "counters.h"

#define BYTES 3000000
#define MANY  4 /* messages at the same time */

static MPI_T_pvar_handle mapgets, mapputs, staged_bytes;

static void delay_copies(bool held)
{
    setenv("SOFTCUDA_LAZY", held ? "1000000000" : "2", 1);
}

/* Calls MPI until this rank has started one more copy. */
static void wait_for_copy_start(MPI_T_pvar_handle started, unsigned long long before)
{
    int flag;
    while (read_counter(started) == before)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, now, &flag, MPI_STATUS_IGNORE);
}

/* All living ranks exchange GPU memory around a ring. */
static void exchange_in_ring(void)
{
    struct area out = area_alloc(AREA_DEVICE, BYTES), in = area_alloc(AREA_DEVICE, BYTES);
    char *expected = malloc(BYTES), *seen = malloc(BYTES);
    const int right = (rank + 1) % victim, left = (rank + victim - 1) % victim;
    area_fill(&out, (unsigned)rank);
    EXPECT_CLASS(MPI_Sendrecv(out.at, BYTES, MPI_BYTE, right, 1, in.at, BYTES, MPI_BYTE, left, 1, now,
                              MPI_STATUS_IGNORE),
                 MPI_SUCCESS);
    area_pattern(expected, BYTES, (unsigned)left);
    area_read(&in, 0, seen, BYTES);
    EXPECT(memcmp(expected, seen, BYTES) == 0);
    free(expected);
    free(seen);
    area_free(&out);
    area_free(&in);
}

/* Rank 0 copies from the memory of the victim, which dies during the copy. */
static void test_sender_dies(void)
{
    struct area a = area_alloc(AREA_DEVICE, BYTES);
    MPI_Request request;
    int go = 1;
    if (rank == victim) {
        MPI_Isend(a.at, BYTES, MPI_BYTE, 0, 2, now, &request);
        MPI_Recv(&go, 1, MPI_INT, 0, 3, now, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    if (rank == 0) {
        const unsigned long long before = read_counter(mapgets);
        delay_copies(true);
        MPI_Irecv(a.at, BYTES, MPI_BYTE, victim, 2, now, &request);
        wait_for_copy_start(mapgets, before);
        MPI_Send(&go, 1, MPI_INT, victim, 3, now);
        EXPECT_DEATH(MPI_Recv(&go, 1, MPI_INT, victim, 4, now, MPI_STATUS_IGNORE));
        delay_copies(false);
        const int rc = get_error_class(MPI_Wait(&request, MPI_STATUS_IGNORE));
        EXPECT(rc == MPI_SUCCESS || rc == MPIX_ERR_PROC_FAILED);
    }
    exchange_in_ring();
    area_free(&a);
}

/* The victim copies from the memory of rank 0 and dies during the copy. */
static void test_receiver_dies(void)
{
    struct area a = area_alloc(AREA_DEVICE, BYTES);
    if (rank == victim) {
        MPI_Request request;
        const unsigned long long before = read_counter(mapgets);
        delay_copies(true);
        MPI_Irecv(a.at, BYTES, MPI_BYTE, 0, 2, now, &request);
        wait_for_copy_start(mapgets, before);
        kill_this_rank();
    }
    if (rank == 0)
        EXPECT_DEATH(MPI_Send(a.at, BYTES, MPI_BYTE, victim, 2, now));
    exchange_in_ring();
    area_free(&a);
}

/* The victim copies to the memory of rank 0 and dies during the copy. */
static void test_writer_dies(void)
{
    struct area device = area_alloc(AREA_DEVICE, BYTES), host = area_alloc(AREA_HOST, BYTES);
    if (rank == victim) {
        MPI_Request request;
        const unsigned long long before = read_counter(mapputs);
        delay_copies(true);
        MPI_Isend(host.at, BYTES, MPI_BYTE, 0, 2, now, &request);
        wait_for_copy_start(mapputs, before);
        kill_this_rank();
    }
    if (rank == 0)
        EXPECT_DEATH(MPI_Recv(device.at, BYTES, MPI_BYTE, victim, 2, now, MPI_STATUS_IGNORE));
    exchange_in_ring();
    area_free(&device);
    area_free(&host);
}

/* Calls MPI until this rank has copied a part of a message through its staging buffers. */
static void wait_for_chunks(unsigned long long before)
{
    int flag;
    while (read_counter(staged_bytes) < before + BYTES / 4)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, now, &flag, MPI_STATUS_IGNORE);
}

/* The victim dies between two chunks of messages that it sends to rank 0, or receives from rank 0. */
static void test_death_between_chunks(bool sends)
{
    struct area areas[MANY];
    MPI_Request requests[MANY];
    const unsigned long long before = read_counter(staged_bytes);
    for (int i = 0; i < MANY; i++) {
        const int other = rank == victim ? 0 : victim;
        areas[i] = area_alloc(AREA_DEVICE, BYTES);
        if (rank == (sends ? victim : 0))
            MPI_Isend(areas[i].at, BYTES, MPI_BYTE, other, 2, now, &requests[i]);
        else if (rank == (sends ? 0 : victim))
            MPI_Irecv(areas[i].at, BYTES, MPI_BYTE, other, 2, now, &requests[i]);
    }
    if (rank == victim) {
        wait_for_chunks(before);
        kill_this_rank();
    }
    for (int i = 0; i < MANY && rank == 0; i++) {
        const int rc = get_error_class(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        EXPECT(rc == MPIX_ERR_PROC_FAILED || (i < MANY - 1 && rc == MPI_SUCCESS));
    }
    exchange_in_ring();
    for (int i = 0; i < MANY; i++)
        area_free(&areas[i]);
}

static void test_sender_dies_between_chunks(void)
{
    test_death_between_chunks(true);
}

static void test_receiver_dies_between_chunks(void)
{
    test_death_between_chunks(false);
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_sender_dies, test_receiver_dies, test_writer_dies},
                        (*const staged[])(void) = {test_sender_dies_between_chunks,
                                                   test_receiver_dies_between_chunks,
                                                   test_sender_dies_between_chunks};
    counters_begin();
    mpitest_begin(&argc, &argv);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    mapgets = counter_open("p2p_rendezvous_mapget");
    mapputs = counter_open("p2p_rendezvous_mapput");
    staged_bytes = counter_open("p2p_device_staged_bytes");
    run_phases(argc > 1 ? staged : phases, 3);
    return finalize_and_get_status();
}
