/* p2p_partitioned.c: the calls of partitioned communication; p2p/partitioned.c implements it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/p2p.h"
#include "api/call_error.h"
#include "base/checked.h"
#include "impl.h"
#include "p2p/partitioned.h"

/* No memory has more bytes. A program whose mpi.h declares count as int (docs/install.md) passes undefined
 * upper 32 bits, which this limit detects. */
#define BYTES_MAX ((MPI_Count)1 << 47)

static int check_size(const struct p2p_call *call, int partitions)
{
    MPI_Count bytes;
    if (partitions < 0)
        return err_set(MPI_ERR_ARG, "partitions is %d; it cannot be negative", partitions);
    if (checked_mul(call->count, call->type->size, &bytes) && checked_mul(bytes, partitions, &bytes) &&
        bytes <= BYTES_MAX)
        return 0;
    return err_set(
        MPI_ERR_COUNT,
        "count is %lld: %d partitions with count elements of %lld bytes each exceed the address space. A "
        "program compiled with an mpi.h in which this count is an int must be compiled with this one, or "
        "call MPI_Psend_init_c and MPI_Precv_init_c",
        (long long)call->count, partitions, (long long)call->type->size);
}

static int partitioned_make(const struct p2p_call *call, int partitions, MPI_Request *request)
{
    bool sends = call->kind == P2P_SEND;
    struct request *r;
    struct partitioned_args args = {
        .sends = sends,
        .buf = call->buf,
        .partitions = partitions,
        .count = call->count,
        .type = call->type,
        .envelope = comm_envelope(call->comm, sends ? call->comm->rank : call->rank, call->tag),
        .source = call->rank,
    };
    int rc = check_size(call, partitions);
    if (rc == 0 && call->rank != MPI_PROC_NULL)
        rc = comm_get_peer(call->comm, call->rank, &args.peer);
    if (rc == 0)
        rc = partitioned_new(call->comm->proc->p2p, &args, &r);
    if (rc != 0)
        return rc;
    request_bind(r, call->comm);
    *request = request_handle(r);
    return 0;
}

int impl_Psend_init(const void *buf, int partitions, MPI_Count count, struct dtype *datatype, int dest,
                    int tag, struct comm *comm, struct info *info, MPI_Request *request)
{
    (void)info; /* no info key is supported */
    struct p2p_call call = {P2P_SEND, (void *)(uintptr_t)buf, count, datatype, dest, tag, comm};
    return partitioned_make(&call, partitions, request);
}

int impl_Precv_init(void *buf, int partitions, MPI_Count count, struct dtype *datatype, int source, int tag,
                    struct comm *comm, struct info *info, MPI_Request *request)
{
    if (source == MPI_ANY_SOURCE)
        return err_set(MPI_ERR_RANK, "source is MPI_ANY_SOURCE; a partitioned receive names its sender");
    if (tag == MPI_ANY_TAG)
        return err_set(MPI_ERR_TAG, "tag is MPI_ANY_TAG; a partitioned receive names its tag");
    struct p2p_call call = {P2P_RECV, buf, count, datatype, source, tag, comm};
    return partitioned_make(&call, partitions, request);
}

int impl_Pready(int partition, struct request *request)
{
    return impl_Pready_range(partition, partition, request);
}

int impl_Pready_range(int partition_low, int partition_high, struct request *request)
{
    int rc = partitioned_ready(request, partition_low, partition_high);
    if (rc == 0 && partition_low > partition_high)
        rc = err_set(MPI_ERR_ARG, "partition_low is %d and partition_high is %d", partition_low,
                     partition_high);
    return api_select_request_errhandler(request, rc);
}

int impl_Pready_list(int length, const int array_of_partitions[], struct request *request)
{
    int rc = length > 0 ? 0 : partitioned_ready(request, 0, -1);
    for (int i = 0; rc == 0 && i < length; i++)
        rc = partitioned_ready(request, array_of_partitions[i], array_of_partitions[i]);
    return api_select_request_errhandler(request, rc);
}

int impl_Parrived(struct request *request, int partition, int *flag)
{
    bool arrived = true;
    int rc = request ? partitioned_arrived(request, partition, &arrived) : 0;
    if (rc != 0)
        return api_select_request_errhandler(request, rc);
    *flag = arrived;
    if (!arrived)
        api_yield_after_failed_test(the_proc);
    return 0;
}
