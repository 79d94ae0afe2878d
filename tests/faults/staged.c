/* staged.c: the program of the kill points of STAGED (src/p2p/rendezvous_staged.c): rounds of messages in GPU
 * memory around a ring of ranks on different nodes, with every byte checked. A rank may die at any moment.
 * Each rank that finishes prints one line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "living.h"

#include "area.h"

enum { ROUNDS = 3, BYTES = 1500000 };

static void test_ring(void)
{
    struct area out = area_alloc(AREA_DEVICE, BYTES), in = area_alloc(AREA_DEVICE, BYTES);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    static char expected[BYTES], seen[BYTES];
    bool arrived[RANKS];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    memset(arrived, true, sizeof(arrived));
    area_fill(&out, (unsigned)(rank + 10 * round_number));
    succeeded(MPI_Irecv(in.at, BYTES, MPI_BYTE, left, 0, now, &requests[0]), "MPI_Irecv");
    succeeded(MPI_Isend(out.at, BYTES, MPI_BYTE, right, 0, now, &requests[1]), "MPI_Isend");
    arrived[left] = requests[0] != MPI_REQUEST_NULL &&
                    succeeded(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), "MPI_Wait for a receive");
    if (arrived[left]) {
        area_pattern(expected, BYTES, (unsigned)(left + 10 * round_number));
        area_read(&in, 0, seen, BYTES);
        if (memcmp(expected, seen, BYTES) != 0)
            report_error_and_exit("the message of rank %d is wrong", left);
    }
    if (requests[1] != MPI_REQUEST_NULL)
        succeeded(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), "MPI_Wait for a send");
    check_missing_are_dead(arrived);
    area_free(&in);
    area_free(&out);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (!area_load_cuda())
        MPI_Abort(MPI_COMM_WORLD, 77);
    use_communicator(MPI_COMM_WORLD);
    const int first = rank;
    for (round_number = 0; round_number < ROUNDS; round_number++) {
        test_ring();
        test_agree();
    }
    printf("rank %d finished, one of %d\n", first, size);
    MPI_Finalize();
    return 0;
}
