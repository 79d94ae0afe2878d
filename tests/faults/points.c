/* points.c: the program of the kill point tests: rounds of every kind of communication that has kill points. Every
 * byte is checked. A rank may die at any time; the others continue with a communicator without it. Each rank that
 * finishes prints one line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "living.h"

enum { ROUNDS = 4, MESSAGES = 6, BYTES = 70000, ELEMENTS = 600, FEW = 3, PIECES = 3 };

static const int sizes[MESSAGES] = {0, 8, 200, 3000, 16000, BYTES};

static unsigned char expected_byte(int from, int to, int k, int i)
{
    return (unsigned char)(from * 31 + to * 7 + k * 13 + round_number * 5 + i * 3 + (i >> 8));
}

/* Messages between two living ranks must arrive, even if other ranks die. */
static void test_messages(void)
{
    static unsigned char in[RANKS][MESSAGES][BYTES], out[RANKS][MESSAGES][BYTES];
    MPI_Request requests[2][RANKS][MESSAGES];
    bool arrived[RANKS] = {false};
    MPI_Datatype pieces; /* the type of one message with gaps in memory */
    MPI_Type_vector(sizes[PIECES] / 100, 100, 200, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < MESSAGES; k++) {
            requests[0][peer][k] = requests[1][peer][k] = MPI_REQUEST_NULL;
            for (int i = 0; i < sizes[k]; i++)
                out[peer][k][k == PIECES ? i / 100 * 200 + i % 100 : i] = expected_byte(rank, peer, k, i);
            succeeded(MPI_Irecv(in[peer][k], sizes[k], MPI_BYTE, peer, k, now, &requests[0][peer][k]),
                      "MPI_Irecv");
        }
    for (int k = 0; k < MESSAGES; k++)
        for (int peer = 0; peer < size; peer++)
            succeeded(MPI_Isend(out[peer][k], k == PIECES ? 1 : sizes[k], k == PIECES ? pieces : MPI_BYTE,
                                peer, k, now, &requests[1][peer][k]),
                      "MPI_Isend");
    for (int peer = 0; peer < size; peer++) {
        arrived[peer] = true;
        for (int k = 0; k < MESSAGES; k++) {
            if (requests[0][peer][k] == MPI_REQUEST_NULL ||
                !succeeded(MPI_Wait(&requests[0][peer][k], MPI_STATUS_IGNORE), "MPI_Wait for a receive")) {
                arrived[peer] = false;
                continue;
            }
            for (int i = 0; i < sizes[k]; i++)
                if (in[peer][k][i] != expected_byte(peer, rank, k, i))
                    report_error_and_exit("message %d of rank %d has %u at byte %d, not %u", k, peer,
                                          in[peer][k][i], i, expected_byte(peer, rank, k, i));
        }
    }
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < MESSAGES; k++)
            if (requests[1][peer][k] != MPI_REQUEST_NULL)
                succeeded(MPI_Wait(&requests[1][peer][k], MPI_STATUS_IGNORE), "MPI_Wait for a send");
    MPI_Type_free(&pieces);
    check_missing_are_dead(arrived);
}

/* Returns true if the call succeeded at all members. After a death a collective call may succeed at some
 * members only; its result is then not used. */
static bool succeeded_everywhere(int rc, const char *what)
{
    int fine = succeeded(rc, what);
    succeeded(MPIX_Comm_agree(now, &fine), "MPIX_Comm_agree");
    return fine;
}

static void test_windows(void)
{
    MPI_Win win;
    double *memory;
    double add[ELEMENTS], old[ELEMENTS];
    long whole[ELEMENTS], one = 1, before;
    const MPI_Aint bytes = ELEMENTS * (MPI_Aint)(sizeof(double) + sizeof(long));
    if (!succeeded_everywhere(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, now, &memory, &win),
                              "MPI_Win_allocate"))
        return;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    memset(memory, 0, (size_t)bytes);
    for (int i = 0; i < ELEMENTS; i++) {
        add[i] = 1;
        whole[i] = 2;
    }
    if (succeeded(MPI_Win_fence(0, win), "MPI_Win_fence")) {
        for (int n = 0; n < 2 && !failed; n++)
            for (int to = 0; to < size; to++) {
                const MPI_Aint second = ELEMENTS * (MPI_Aint)sizeof(double);
                succeeded(
                    MPI_Accumulate(add, ELEMENTS, MPI_DOUBLE, to, 0, ELEMENTS, MPI_DOUBLE, MPI_SUM, win),
                    "MPI_Accumulate of double");
                succeeded(
                    MPI_Accumulate(whole, ELEMENTS, MPI_LONG, to, second, ELEMENTS, MPI_LONG, MPI_SUM, win),
                    "MPI_Accumulate of long");
                succeeded(MPI_Accumulate(whole, FEW, MPI_LONG, to, second, FEW, MPI_LONG, MPI_SUM, win),
                          "a short MPI_Accumulate");
                succeeded(MPI_Get_accumulate(add, ELEMENTS, MPI_DOUBLE, old, ELEMENTS, MPI_DOUBLE, to, 0,
                                             ELEMENTS, MPI_DOUBLE, MPI_SUM, win),
                          "MPI_Get_accumulate");
            }
        for (int to = 0; to < size && !failed; to++)
            succeeded(
                MPI_Fetch_and_op(&one, &before, MPI_LONG, to, bytes - (MPI_Aint)sizeof(long), MPI_SUM, win),
                "MPI_Fetch_and_op");
        succeeded(MPI_Win_fence(0, win), "MPI_Win_fence");
    }
    const long *sums = (const long *)(memory + ELEMENTS);
    for (int i = 0; i < ELEMENTS && !failed; i++) {
        const long due = (i < FEW ? 8 : 4) * (long)size + (i == ELEMENTS - 1 ? size : 0);
        if (memory[i] != 4.0 * size || sums[i] != due)
            report_error_and_exit("element %d is %g and %ld, not %d and %ld", i, memory[i], sums[i], 4 * size,
                                  due);
    }
    succeeded(MPI_Win_free(&win), "MPI_Win_free");
}

static void test_files(const char *name)
{
    MPI_File file;
    MPI_Offset length = 0;
    int number = rank;
    if (!succeeded_everywhere(MPI_File_open(now, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
                              "MPI_File_open"))
        return;
    succeeded(MPI_File_set_size(file, 0), "MPI_File_set_size");
    for (int n = 0; n < 3 && !failed; n++)
        succeeded(MPI_File_write_shared(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE),
                  "MPI_File_write_shared");
    if (succeeded(MPI_Barrier(now), "MPI_Barrier") &&
        succeeded(MPI_File_get_size(file, &length), "MPI_File_get_size") && !failed &&
        length != 3 * size * (MPI_Offset)sizeof(int))
        report_error_and_exit("the file has %lld bytes, not %d", (long long)length,
                              3 * size * (int)sizeof(int));
    succeeded(MPI_File_close(&file), "MPI_File_close");
}

/* Rank 1 changes elements of rank 0 once; the other ranks change them until rank 1 reports its change. */
static void test_change_exclusion(void)
{
    double *memory, one[FEW] = {1, 1, 1};
    MPI_Win win;
    int done = 0;
    MPI_Win_allocate(sizeof(one), 1, MPI_INFO_NULL, now, &memory, &win);
    MPI_Win_lock_all(0, win);
    for (int n = 0; !done; n++) {
        if (rank != 1)
            MPI_Iprobe(1, 0, now, &done, MPI_STATUS_IGNORE);
        done = done || rank == 1;
        MPI_Accumulate(one, FEW, MPI_DOUBLE, 0, 0, FEW, MPI_DOUBLE, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    for (int to = 0; to < size; to++)
        if (to != rank && rank == 1)
            MPI_Send(&done, 1, MPI_INT, to, 0, now);
    if (rank != 1)
        MPI_Recv(&done, 1, MPI_INT, 1, 0, now, MPI_STATUS_IGNORE);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    use_communicator(MPI_COMM_WORLD);
    const int first = rank;
    if (argc > 1 && strcmp(argv[1], "hold") == 0)
        test_change_exclusion();
    else
        for (round_number = 0; round_number < ROUNDS; round_number++) {
            test_messages();
            test_agree();
            test_windows();
            test_agree();
            test_files(argc > 1 ? argv[1] : "points.file");
            test_agree();
        }
    printf("rank %d finished, one of %d\n", first, size);
    MPI_Finalize();
    return 0;
}
