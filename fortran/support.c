/* support.c: the small conversions between Fortran and C: sentinel addresses, strings, arrays of handles.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fortran/fort.h"

/* Aligned at least as gfortran aligns common blocks (32 bytes on x86-64), since a program's common blocks
 * replace these variables; the linker warns of a smaller alignment. */
#define SENTINEL __attribute__((aligned(64)))
SENTINEL MPI_Fint mpifort_bottom_, mpifort_in_place_, mpifort_automatic_;
SENTINEL MPI_Fint mpifort_status_ignore_[8], mpifort_statuses_ignore_[8];
SENTINEL MPI_Fint mpifort_unweighted_[1], mpifort_weights_empty_[1], mpifort_errcodes_ignore_[1];
SENTINEL char mpifort_argv_null_[1], mpifort_argvs_null_[1];

/* MPI_Status_f2c and similar functions need these addresses before the first Fortran call. */
__attribute__((constructor)) static void set_c_constants(void)
{
    MPI_F_STATUS_IGNORE = mpifort_status_ignore_;
    MPI_F_STATUSES_IGNORE = mpifort_statuses_ignore_;
    MPI_F08_STATUS_IGNORE = (MPI_F08_status *)mpifort_status_ignore_;
    MPI_F08_STATUSES_IGNORE = (MPI_F08_status *)mpifort_statuses_ignore_;
}

void *fort_buffer(void *buffer)
{
    if (buffer == &mpifort_in_place_)
        return MPI_IN_PLACE;
    if (buffer == &mpifort_bottom_)
        return MPI_BOTTOM;
    if (buffer == &mpifort_automatic_)
        return MPI_BUFFER_AUTOMATIC;
    return buffer;
}

int *fort_weights(const int *weights)
{
    if (weights == mpifort_unweighted_)
        return MPI_UNWEIGHTED;
    if (weights == mpifort_weights_empty_)
        return MPI_WEIGHTS_EMPTY;
    return (int *)weights;
}

MPI_Status *fort_status(MPI_Status *status)
{
    const void *address = status;
    if (address == mpifort_status_ignore_ || address == mpifort_statuses_ignore_)
        return MPI_STATUS_IGNORE;
    return status;
}

static char *copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy)
        abort();
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *fort_string(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return copy_text(text, length);
}

char *fort_string_stripped(const char *text, size_t length)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    return fort_string(text, length);
}

void fort_string_out(char *text, size_t length, const char *from)
{
    size_t n = strlen(from);
    if (n > length)
        n = length;
    memcpy(text, from, n);
    memset(text + n, ' ', length - n);
}

size_t fort_length(MPI_Count count)
{
    return count > 0 ? (size_t)count : 0;
}

/* The number of datatypes that MPI_Alltoallw and the like read. */
size_t fort_peers(MPI_Fint comm, bool neighbors, bool sending, void *sendbuf)
{
    const MPI_Comm c = PMPI_Comm_f2c(comm);
    int n = 0, other = 0, inter = 0, kind = MPI_UNDEFINED;
    if (c == MPI_COMM_NULL || (sending && sendbuf == &mpifort_in_place_))
        return 0;
    if (!neighbors) {
        PMPI_Comm_test_inter(c, &inter);
        if (inter)
            PMPI_Comm_remote_size(c, &n);
        else
            PMPI_Comm_size(c, &n);
        return fort_length(n);
    }
    PMPI_Topo_test(c, &kind);
    if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(c, &n, &other, &inter);
        return fort_length(sending ? other : n);
    }
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(c, &n);
        return fort_length(2 * n);
    }
    if (kind == MPI_GRAPH) {
        PMPI_Comm_rank(c, &other);
        PMPI_Graph_neighbors_count(c, other, &n);
    }
    return fort_length(n);
}

static void *allocate_room(void *few, size_t n, size_t size)
{
    void *result = few && n <= FORT_FEW ? few : malloc(n * size + 1);
    if (!result)
        abort();
    return result;
}

void fort_room_free(void *given, void *few)
{
    if (given != few)
        free(given);
}

MPI_Datatype *fort_types_in(const MPI_Fint *from, size_t n, MPI_Datatype *few, bool convert)
{
    MPI_Datatype *types = allocate_room(few, n, sizeof(*types));
    for (size_t i = 0; i < n; i++)
        types[i] = convert ? PMPI_Type_f2c(from[i]) : MPI_DATATYPE_NULL;
    return types;
}

void fort_types_out(MPI_Fint *to, const MPI_Datatype *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = PMPI_Type_c2f(from[i]);
}

MPI_Request *fort_requests_in(const MPI_Fint *from, size_t n, MPI_Request *few, bool convert)
{
    MPI_Request *requests = allocate_room(few, n, sizeof(*requests));
    for (size_t i = 0; i < n; i++)
        requests[i] = convert ? PMPI_Request_f2c(from[i]) : MPI_REQUEST_NULL;
    return requests;
}

void fort_request_out(MPI_Fint *to, MPI_Request from)
{
    if (fort_copy_records)
        fort_request_ended(*to, from);
    *to = PMPI_Request_c2f(from);
}

void fort_requests_out(MPI_Fint *to, const MPI_Request *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fort_request_out(&to[i], from[i]);
}

/* Converts indices to Fortran's, which start at 1. */
void fort_count_from_one(int *indices, int n)
{
    for (int i = 0; i < n; i++)
        indices[i]++;
}
