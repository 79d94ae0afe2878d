/* op.c: MPI's operators: creating, querying, freeing and applying them locally.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/device_pack.h"
#include "dt/op.h"
#include "api/check.h"
#include "api/forward.h"
#include "impl.h"

int op_return_handle(int rc, struct op *made, MPI_Op *out)
{
    if (!rc)
        *out = op_handle(made);
    return rc;
}

int impl_Op_free(MPI_Op *op)
{
    struct op *gone = op_from_handle(*op);
    if (!gone)
        return bad_handle(HANDLE_OP, "op", *op);
    if (gone->obj.predefined)
        return err_set(MPI_ERR_OP, "op is predefined; it cannot be freed");
    op_release(gone);
    *op = MPI_OP_NULL;
    return 0;
}

int impl_Reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, struct dtype *datatype,
                      struct op *op)
{
    if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE)
        return err_set(MPI_ERR_BUFFER, "MPI_IN_PLACE is not a buffer of MPI_Reduce_local");
    if (count > 0 && datatype->handle && inbuf == inoutbuf)
        return err_set(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same memory");
    int rc = op_check(op, datatype);
    if (rc)
        return rc;
    if (dt_is_device(inbuf, count, datatype) || dt_is_device(inoutbuf, count, datatype))
        return op_apply_on_device(op, inbuf, inoutbuf, count, datatype);
    op_apply(op, inbuf, inoutbuf, count, datatype);
    return 0;
}
