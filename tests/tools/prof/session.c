/* session.c: MPI without MPI_Init: two consecutive sessions; in each session each rank sends 100 bytes to
 * the next rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

static void use_session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    char out[100] = "", in[100];
    int rank, size;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "prof", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(out, 100, MPI_BYTE, (rank + 1) % size, 0, in, 100, MPI_BYTE, (rank + size - 1) % size, 0,
                 comm, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

int main(void)
{
    use_session();
    use_session();
    return 0;
}
