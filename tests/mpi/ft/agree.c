/* agree.c: agreement and shrinking while members kill_this_rank during the call, and revocation: all living ranks get
 * the same result.
 *
 * ranks: 8
 * nodes: 4
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

/* Checks that all living ranks have the same number. */
static void expect_same(MPI_Comm c, int mine)
{
    int both[2] = {mine, -mine}, most[2];
    EXPECT_CLASS(MPI_Allreduce(both, most, 2, MPI_INT, MPI_MAX, c), MPI_SUCCESS);
    EXPECT_EQ(most[0], -most[1]);
}

/* Agreements without deaths, or after deaths that all ranks know. */
static void test_agreement_without_deaths(void)
{
    int flag = rank == 0 ? 6 : 3;
    MPI_Request r;
    EXPECT_CLASS(MPIX_Comm_agree(now, &flag), MPI_SUCCESS);
    EXPECT_EQ(flag, 2);
    flag = 8 | 1 << rank;
    EXPECT_CLASS(MPIX_Comm_iagree(now, &flag, &r), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(flag, 8);
}

/* Shrinks MPI_COMM_SELF's duplicate and another communicator at the same time; the first must wait for the
 * context ids of the second. */
static void test_concurrent_shrinks(void)
{
    MPI_Comm next, own;
    MPI_Request r;
    int n = 0;
    EXPECT_CLASS(MPIX_Comm_ishrink(now, &next, &r), MPI_SUCCESS);
    EXPECT_CLASS(MPIX_Comm_shrink(MPI_COMM_SELF, &own), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Comm_size(own, &n);
    EXPECT_EQ(n, 1);
    MPI_Comm_size(next, &n);
    EXPECT_EQ(n, size);
    MPI_Comm_free(&own);
    MPI_Comm_free(&next);
}

/* The victim contributes and dies while the others are in the agreement; the next root of the tree may kill_this_rank
 * too. */
static void test_death_inside_agreement(void)
{
    int flag = rank == victim ? 1 : 3;
    MPI_Request r;
    MPI_Comm next;
    MPIX_Comm_iagree(now, &flag, &r);
    if (rank == victim)
        kill_this_rank();
    int rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(get_error_class(rc) == MPI_SUCCESS || get_error_class(rc) == MPIX_ERR_PROC_FAILED);
    EXPECT(flag == 1 || flag == 3);
    EXPECT_DEATH(MPI_Barrier(now));
    EXPECT_CLASS(MPIX_Comm_shrink(now, &next), MPI_SUCCESS);
    expect_same(next, flag);
    expect_same(next, get_error_class(rc));
    MPI_Comm_free(&next);
}

/* The victim dies while many agreements are in progress. */
static void test_death_during_many_agreements(void)
{
    enum { MANY = 40 };
    int flags[MANY], sum = 0;
    MPI_Request r[MANY];
    MPI_Comm next;
    for (int i = 0; i < MANY; i++) {
        flags[i] = rank == victim ? 1 : 3;
        MPIX_Comm_iagree(now, &flags[i], &r[i]);
        if (rank == victim && i == MANY / 2)
            kill_this_rank();
    }
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) {
        EXPECT(flags[i] == 1 || flags[i] == 3);
        sum = 2 * sum % 9973 + flags[i];
    }
    EXPECT_CLASS(MPIX_Comm_shrink(now, &next), MPI_SUCCESS);
    expect_same(next, sum);
    MPI_Comm_free(&next);
}

/* Rank 0, the root of the agreement's tree, dies. */
static void test_root_dies(void)
{
    int flag = rank == 0 ? 5 : 7;
    MPI_Comm next, old = now;
    MPI_Request r;
    MPIX_Comm_iagree(now, &flag, &r);
    if (rank == 0)
        kill_this_rank();
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(flag == 5 || flag == 7);
    EXPECT_CLASS(MPIX_Comm_ishrink(now, &next, &r), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    now = next;
    if (old != MPI_COMM_WORLD)
        MPI_Comm_free(&old);
    update_rank_and_size();
    expect_same(now, flag);
}

/* A revocation reaches ranks that wait for a living rank. */
static void test_revocation(void)
{
    int x, flag = 0;
    MPI_Comm dup;
    EXPECT_CLASS(MPI_Comm_dup(now, &dup), MPI_SUCCESS);
    MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
    if (rank == victim) {
        EXPECT_CLASS(MPIX_Comm_is_revoked(dup, &flag), MPI_SUCCESS);
        EXPECT_EQ(flag, 0);
        EXPECT_CLASS(MPIX_Comm_revoke(dup), MPI_SUCCESS);
    } else if (rank % 2) {
        EXPECT_CLASS(MPI_Recv(&x, 1, MPI_INT, 0, 9, dup, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    } else {
        EXPECT_CLASS(MPI_Barrier(dup), MPIX_ERR_REVOKED);
    }
    EXPECT_CLASS(MPIX_Comm_is_revoked(dup, &flag), MPI_SUCCESS);
    EXPECT_EQ(flag, 1);
    EXPECT_CLASS(MPI_Send(&x, 1, MPI_INT, 0, 9, dup), MPIX_ERR_REVOKED);
    EXPECT_CLASS(MPI_Barrier(dup), MPIX_ERR_REVOKED);
    flag = 12 + rank % 2;
    EXPECT_CLASS(MPIX_Comm_agree(dup, &flag), MPI_SUCCESS);
    EXPECT_EQ(flag, size > 1 ? 12 : 12 + rank % 2);
    MPI_Comm_free(&dup);
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_agreement_without_deaths, test_concurrent_shrinks,
                                           test_death_inside_agreement, test_death_during_many_agreements,
                                           test_revocation};
    mpitest_begin(&argc, &argv);
    run_phases(phases, 5);
    test_root_dies();
    test_root_dies();
    return finalize_and_get_status();
}
