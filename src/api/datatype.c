/* datatype.c: MPI's constructors of datatypes; committing, copying and freeing them. The small and the
 * large-count form of a constructor differ in what MPI_Type_get_envelope returns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"
#include "api/forward.h"
#include "dt/build.h"
#include "impl.h"
#include "obj/attr.h"
#include "obj/handle.h"
#include "p2p/request.h"

int type_return_handle(int rc, const struct dtype *made, MPI_Datatype *out)
{
    if (!rc)
        *out = dtype_handle(made);
    return rc;
}

int impl_Type_create_darray(int size, int rank, int ndims, struct ivec array_of_gsizes,
                            const int array_of_distribs[], const int array_of_dargs[],
                            const int array_of_psizes[], int order, struct dtype *oldtype,
                            MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    struct darray d = {.size = size,
                       .rank = rank,
                       .ndims = ndims,
                       .gsizes = array_of_gsizes,
                       .distribs = array_of_distribs,
                       .dargs = array_of_dargs,
                       .psizes = array_of_psizes,
                       .order = order};
    int rc = dtype_darray(&d, oldtype, &t);
    return type_return_handle(rc, t, newtype);
}

int impl_Type_get_value_index(struct dtype *value_type, struct dtype *index_type, MPI_Datatype *pair_type)
{
    struct dtype *t = NULL;
    int rc = dtype_value_index(value_type, index_type, &t);
    if (!rc)
        *pair_type = t ? dtype_handle(t) : MPI_DATATYPE_NULL;
    return rc;
}

int impl_Type_commit(MPI_Datatype *datatype)
{
    struct dtype *t = dtype_from_handle(*datatype);
    return t ? dtype_commit(t) : bad_handle(HANDLE_DTYPE, "datatype", *datatype);
}

int impl_Type_dup(struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    int rc = dtype_dup(oldtype, &t);
    if (rc)
        return rc;
    rc = attr_copy_all(the_proc, dtype_handle(oldtype), oldtype->attrs, &t->attrs);
    if (rc) { /* an attribute's copy function failed; programs also check for a null handle */
        dtype_release(t);
        *newtype = MPI_DATATYPE_NULL;
    }
    return type_return_handle(rc, t, newtype);
}

/* Attributes are deleted with the user's last handle, though the type itself may remain in use inside other
 * types. */
int impl_Type_free(MPI_Datatype *datatype)
{
    struct dtype *t = dtype_from_handle(*datatype);
    if (!t)
        return bad_handle(HANDLE_DTYPE, "datatype", *datatype);
    if (t->obj.predefined)
        return err_set(MPI_ERR_TYPE, "datatype is predefined (%s); it cannot be freed",
                       t->name[0] ? t->name : "unnamed");
    int rc = t->handles == 1 ? attr_delete_all(the_proc, *datatype, &t->attrs) : 0;
    if (rc)
        return rc;
    t->handles--;
    dtype_release(t);
    *datatype = MPI_DATATYPE_NULL;
    return 0;
}

int impl_Status_set_elements(MPI_Status *status, struct dtype *datatype, MPI_Count count)
{
    MPI_Count bytes;
    int rc = dt_set_elements(datatype, count, &bytes);
    if (!rc)
        status_set_bytes(status, bytes);
    return rc;
}
