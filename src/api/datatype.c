/* datatype.c: MPI's constructors of datatypes; committing, copying and freeing them. The small and the
 * large-count form of a constructor differ in what MPI_Type_get_envelope returns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/build.h"
#include "impl.h"
#include "obj/attr.h"
#include "obj/handle.h"

/* Returns a new type's handle, or its error. t points to the variable that the call behind rc has set: arguments are
 * evaluated in any order. */
static int type_return_handle(int rc, struct dtype **t, MPI_Datatype *out)
{
    if (!rc)
        *out = dtype_handle(*t);
    return rc;
}

int impl_Type_contiguous(int count, struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_contiguous(count, oldtype, false, &t), &t, newtype);
}

int impl_Type_contiguous_c(MPI_Count count, struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_contiguous(count, oldtype, true, &t), &t, newtype);
}

int impl_Type_vector(int count, int blocklength, int stride, struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_vector(count, blocklength, stride, oldtype, false, &t), &t, newtype);
}

int impl_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, struct dtype *oldtype,
                       MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_vector(count, blocklength, stride, oldtype, true, &t), &t, newtype);
}

int impl_Type_create_hvector(int count, int blocklength, MPI_Aint stride, struct dtype *oldtype,
                             MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_hvector(count, blocklength, stride, oldtype, false, &t), &t, newtype);
}

int impl_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                               struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_hvector(count, blocklength, stride, oldtype, true, &t), &t, newtype);
}

int impl_Type_indexed(MPI_Count count, struct ivec array_of_blocklengths, struct ivec array_of_displacements,
                      struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(
        dtype_indexed(count, array_of_blocklengths, array_of_displacements, oldtype, &t), &t, newtype);
}

int impl_Type_create_hindexed(MPI_Count count, struct ivec array_of_blocklengths,
                              struct ivec array_of_displacements, struct dtype *oldtype,
                              MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(
        dtype_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, &t), &t, newtype);
}

int impl_Type_create_indexed_block(MPI_Count count, MPI_Count blocklength, struct ivec array_of_displacements,
                                   struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_indexed_block(count, blocklength, array_of_displacements, oldtype, &t),
                              &t, newtype);
}

int impl_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[],
                                    struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    struct ivec at = ivec_wide(array_of_displacements);
    return type_return_handle(dtype_hindexed_block(count, blocklength, at, oldtype, false, &t), &t, newtype);
}

int impl_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength,
                                      const MPI_Count array_of_displacements[], struct dtype *oldtype,
                                      MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    struct ivec at = ivec_wide(array_of_displacements);
    return type_return_handle(dtype_hindexed_block(count, blocklength, at, oldtype, true, &t), &t, newtype);
}

int impl_Type_create_struct(MPI_Count count, struct ivec array_of_blocklengths,
                            struct ivec array_of_displacements, const MPI_Datatype array_of_types[],
                            MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(
        dtype_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, &t), &t, newtype);
}

int impl_Type_create_subarray(int ndims, struct ivec array_of_sizes, struct ivec array_of_subsizes,
                              struct ivec array_of_starts, int order, struct dtype *oldtype,
                              MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(
        dtype_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, &t), &t,
        newtype);
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
    return type_return_handle(dtype_darray(&d, oldtype, &t), &t, newtype);
}

int impl_Type_create_resized(struct dtype *oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_resized(oldtype, lb, extent, false, &t), &t, newtype);
}

int impl_Type_create_resized_c(struct dtype *oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_resized(oldtype, lb, extent, true, &t), &t, newtype);
}

int impl_Type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_f90_real(p, r, &t), &t, newtype);
}

int impl_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_f90_complex(p, r, &t), &t, newtype);
}

int impl_Type_create_f90_integer(int r, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_f90_integer(r, &t), &t, newtype);
}

int impl_Type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
    struct dtype *t = NULL;
    return type_return_handle(dtype_match_size(typeclass, size, &t), &t, datatype);
}

int impl_Type_get_value_index(struct dtype *value_type, struct dtype *index_type, MPI_Datatype *pair_type)
{
    struct dtype *t = NULL;
    int rc = dtype_value_index(value_type, index_type, &t);
    if (!rc)
        *pair_type = t ? dtype_handle(t) : MPI_DATATYPE_NULL;
    return rc;
}

static int bad_datatype(void)
{
    return err_set(MPI_ERR_TYPE, "datatype is not a valid datatype");
}

int impl_Type_commit(MPI_Datatype *datatype)
{
    struct dtype *t = dtype_from(*datatype);
    return t ? dtype_commit(t) : bad_datatype();
}

int impl_Type_dup(struct dtype *oldtype, MPI_Datatype *newtype)
{
    struct dtype *t = NULL;
    int rc = dtype_dup(oldtype, &t);
    if (rc)
        return rc;
    rc = attr_copy_all(the_proc, ATTR_TYPE, dtype_handle(oldtype), oldtype->attrs, &t->attrs);
    if (rc) { /* a callback's refusal, which programs also check in the handle */
        dtype_release(t);
        *newtype = MPI_DATATYPE_NULL;
    }
    return type_return_handle(rc, &t, newtype);
}

/* Attributes are deleted with the user's last handle, though the type itself may remain in use inside others. */
int impl_Type_free(MPI_Datatype *datatype)
{
    struct dtype *t = dtype_from(*datatype);
    if (!t)
        return bad_datatype();
    if (t->obj.predefined)
        return err_set(MPI_ERR_TYPE, "datatype is predefined (%s); it cannot be freed",
                       t->name[0] ? t->name : "unnamed");
    int rc = t->handles == 1 ? attr_delete_all(the_proc, ATTR_TYPE, *datatype, &t->attrs) : 0;
    if (rc)
        return rc;
    t->handles--;
    dtype_release(t);
    *datatype = MPI_DATATYPE_NULL;
    return 0;
}
