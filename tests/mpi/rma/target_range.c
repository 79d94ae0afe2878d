/* target_range.c: target datatypes with negative extent, or with displacements beyond 64 bits: accesses
 * inside the window work, all others are refused and change no byte outside the window.
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../mpitest.h"

#define ITEMS 8

int main(int argc, char **argv)
{
    int *memory, from[ITEMS];
    MPI_Datatype back, far;
    MPI_Win win;
    mpitest_begin(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &back);
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 61, &far);
    MPI_Type_commit(&back);
    MPI_Type_commit(&far);
    /* The window is the middle third of this memory. */
    memory = malloc(3 * ITEMS * sizeof(int));
    for (int i = 0; i < 3 * ITEMS; i++)
        memory[i] = -1;
    for (int i = 0; i < ITEMS; i++)
        from[i] = 100 + i;
    MPI_Win_create(memory + ITEMS, ITEMS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    const int to = 1 - mpitest_rank;
    /* Puts items 5, 4 and 3, since the extent is negative. */
    EXPECT_EQ(MPI_Put(from, 3, MPI_INT, to, 5, 3, back, win), MPI_SUCCESS);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 3 * ITEMS; i++)
        EXPECT_EQ(memory[i], i == ITEMS + 5 ? 100 : i == ITEMS + 4 ? 101 : i == ITEMS + 3 ? 102 : -1);
    /* Items 0 and -1, or 2 to -1: outside of the window. */
    EXPECT_CLASS(MPI_Put(from, 2, MPI_INT, to, 0, 2, back, win), MPI_ERR_RMA_RANGE);
    EXPECT_CLASS(MPI_Get(from, 4, MPI_INT, to, 2, 4, back, win), MPI_ERR_RMA_RANGE);
    EXPECT_CLASS(MPI_Accumulate(from, 2, MPI_INT, to, 0, 2, back, MPI_REPLACE, win), MPI_ERR_RMA_RANGE);
    /* Elements 2^61 bytes apart: item 4 would be at offset 2^63, item 8 at offset 0 again. */
    for (int n = 2; n <= ITEMS; n++) {
        EXPECT_CLASS(MPI_Put(from, n, MPI_INT, to, 0, n, far, win), MPI_ERR_RMA_RANGE);
        EXPECT_CLASS(MPI_Put(from, n, MPI_INT, to, (MPI_Aint)1 << 61, n, MPI_INT, win), MPI_ERR_RMA_RANGE);
    }
    MPI_Win_fence(0, win);
    for (int i = 0; i < 3 * ITEMS; i++)
        EXPECT_EQ(memory[i], i == ITEMS + 5 ? 100 : i == ITEMS + 4 ? 101 : i == ITEMS + 3 ? 102 : -1);
    MPI_Win_free(&win);
    MPI_Type_free(&back);
    MPI_Type_free(&far);
    free(memory);
    return mpitest_end();
}
