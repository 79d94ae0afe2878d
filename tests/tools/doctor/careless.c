/* careless.c: a program that does not free its objects, and one whose datatypes do not match; each mistake
 * is on a separate line, which the checks of FISHPLATE_DEBUG must name.
 *
 *     careless leaks|match|clean
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 20 };

static int rank;

static void test_leaks(const char *file)
{
    MPI_Comm comm;
    MPI_Datatype type, inner, outer;
    MPI_Win win;
    MPI_File f;
    MPI_Request requests[3];
    MPI_Message message;
    MPI_Info info;
    static char bytes[LARGE], late[8];
    for (int i = 0; i < 2; i++)
        /* leak: 2 communicators from MPI_Comm_dup */
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    /* leak: 1 datatype from MPI_Type_contiguous */
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_contiguous(2, MPI_INT, &inner);
    /* leak: 1 datatype from MPI_Type_vector */
    MPI_Type_vector(2, 1, 2, inner, &outer);
    MPI_Type_free(&inner);
    /* leak: 1 info object from MPI_Info_create */
    MPI_Info_create(&info);
    /* leak: 1 window from MPI_Win_create */
    MPI_Win_create(bytes, sizeof(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    /* leak: 1 file from MPI_File_open */
    MPI_File_open(MPI_COMM_SELF, file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    /* leak: 1 request from MPI_Irecv */
    MPI_Irecv(late, 8, MPI_CHAR, 1 - rank, 99, MPI_COMM_WORLD, &requests[0]);
    /* leak: 1 request from MPI_Send_init */
    MPI_Send_init(late, 8, MPI_CHAR, 1 - rank, 98, MPI_COMM_WORLD, &requests[1]);
    /* leak: 1 request from MPI_Ibarrier */
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
    MPI_Send("probed", 6, MPI_CHAR, 1 - rank, 5, MPI_COMM_WORLD);
    /* leak: 1 matched message from MPI_Mprobe */
    MPI_Mprobe(1 - rank, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Send("lost", 4, MPI_CHAR, 1 - rank, 6, MPI_COMM_WORLD);
    MPI_Probe(1 - rank, 6, MPI_COMM_WORLD,
              MPI_STATUS_IGNORE); /* the message has arrived and is not received */
}

/* Sends one type and receives another, small and large, expected and unexpected. */
static void test_match(void)
{
    static int ints[LARGE];
    static float floats[LARGE];
    struct {
        int i;
        double d;
    } pair = {0};
    MPI_Datatype both;
    MPI_Request r;
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, (char *)&pair.d - (char *)&pair},
                           (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &both);
    MPI_Type_commit(&both);
    if (rank == 1)
        /* receive: small */
        MPI_Irecv(floats, 10, MPI_FLOAT, 0, 1, MPI_COMM_WORLD, &r);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        /* send: small */
        MPI_Send(ints, 10, MPI_INT, 1, 1, MPI_COMM_WORLD);
        /* send: large */
        MPI_Send(ints, LARGE, MPI_INT, 1, 2, MPI_COMM_WORLD);
        /* send: derived */
        MPI_Send(&pair, 1, both, 1, 3, MPI_COMM_WORLD);
        MPI_Send(ints, 8, MPI_INT, 1, 4, MPI_COMM_WORLD);
        MPI_Send(ints, 8, MPI_INT, 1, 5, MPI_COMM_WORLD);
    } else {
        MPI_Datatype four;
        MPI_Type_contiguous(4, MPI_INT, &four);
        MPI_Type_commit(&four);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        /* receive: large */
        MPI_Recv(floats, LARGE, MPI_FLOAT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        /* receive: derived */
        MPI_Recv(ints, 12, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(ints, 2, four, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the same signature */
        MPI_Recv(ints, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&four);
    }
    MPI_Type_free(&both);
}

static void test_clean(void)
{
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request requests[2];
    static int in[1000], out[1000];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(10, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 20; i++) {
        MPI_Irecv(in, 20, MPI_INT, 1 - rank, i, comm, &requests[0]);
        MPI_Isend(out, 2, type, 1 - rank, i, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(in, out, 100, MPI_INT, MPI_SUM, comm);
    }
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 2 && strcmp(argv[1], "leaks") == 0)
        test_leaks(argv[2]);
    else if (argc > 1 && strcmp(argv[1], "match") == 0)
        test_match();
    else
        test_clean();
    MPI_Finalize();
    printf("end of rank %d\n", rank);
    return 0;
}
