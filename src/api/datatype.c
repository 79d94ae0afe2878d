/* datatype.c: MPI's constructors of datatypes; committing, copying and freeing them. The small and the
 * large-count form of a constructor differ in what MPI_Type_get_envelope returns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "api/check.h"
#include "api/forward.h"
#include "dt/build.h"
#include "dt/dtype.h"
#include "dt/recipe.h"
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

/* How a datatype was made, as a user can query it. Types made by large-count functions can only be queried by
 * large-count functions. */

static const struct dt_recipe named = {.combiner = MPI_COMBINER_NAMED};

static const struct dt_recipe *get_recipe_or_named(const struct dtype *t)
{
    return t->recipe ? t->recipe : &named;
}

static int check_not_large_count(const struct dt_recipe *r, const char *function)
{
    if (r->counts == 0)
        return 0;
    return err_set(MPI_ERR_TYPE, "the datatype was made by a large-count function; use %s", function);
}

int impl_Type_get_envelope(struct dtype *datatype, int *num_integers, int *num_addresses, int *num_datatypes,
                           int *combiner)
{
    const struct dt_recipe *r = get_recipe_or_named(datatype);
    int rc = check_not_large_count(r, "MPI_Type_get_envelope_c");
    if (rc)
        return rc;
    *num_integers = r->integers > INT_MAX ? MPI_UNDEFINED : (int)r->integers;
    *num_addresses = r->addresses > INT_MAX ? MPI_UNDEFINED : (int)r->addresses;
    *num_datatypes = r->types > INT_MAX ? MPI_UNDEFINED : (int)r->types;
    *combiner = r->combiner;
    return 0;
}

int impl_Type_get_envelope_c(struct dtype *datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
                             MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner)
{
    const struct dt_recipe *r = get_recipe_or_named(datatype);
    *num_integers = r->integers;
    *num_addresses = r->addresses;
    *num_large_counts = r->counts;
    *num_datatypes = r->types;
    *combiner = r->combiner;
    return 0;
}

/* Copies an array of the recipe to the user's array, if that is large enough. */
static int copy_out(const char *what, void *to, MPI_Count room, const void *from, MPI_Count count,
                    size_t size)
{
    if (count > room)
        return err_set(MPI_ERR_ARG, "max_%s is %lld; the datatype has %lld", what, (long long)room,
                       (long long)count);
    if (count > 0 && !to)
        return err_set(MPI_ERR_ARG, "array_of_%s is NULL", what);
    if (count > 0)
        memcpy(to, from, (size_t)count * size);
    return 0;
}

/* Returns a new handle of every derived type, which the user must free. */
static int return_type_handles(const struct dt_recipe *r, MPI_Count room, MPI_Datatype *to)
{
    if (r->types > room)
        return err_set(MPI_ERR_ARG, "max_datatypes is %lld; the datatype has %lld", (long long)room,
                       (long long)r->types);
    if (r->types > 0 && !to)
        return err_set(MPI_ERR_ARG, "array_of_datatypes is NULL");
    for (MPI_Count i = 0; i < r->types; i++) {
        if (!r->type[i]->obj.predefined) {
            r->type[i]->handles++;
            dtype_retain(r->type[i]);
        }
        to[i] = dtype_handle(r->type[i]);
    }
    return 0;
}

int impl_Type_get_contents_c(struct dtype *datatype, MPI_Count max_integers, MPI_Count max_addresses,
                             MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
                             MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                             MPI_Datatype array_of_datatypes[])
{
    const struct dt_recipe *r = datatype->recipe;
    if (!r)
        return err_set(MPI_ERR_TYPE, "%s is predefined; it has no contents", datatype->name);
    int rc = copy_out("integers", array_of_integers, max_integers, r->integer, r->integers, sizeof(int));
    if (!rc)
        rc = copy_out("addresses", array_of_addresses, max_addresses, r->address, r->addresses,
                      sizeof(MPI_Aint));
    if (!rc)
        rc = copy_out("large_counts", array_of_large_counts, max_large_counts, r->large, r->counts,
                      sizeof(MPI_Count));
    return rc ? rc : return_type_handles(r, max_datatypes, array_of_datatypes);
}

int impl_Type_get_contents(struct dtype *datatype, int max_integers, int max_addresses, int max_datatypes,
                           int array_of_integers[], MPI_Aint array_of_addresses[],
                           MPI_Datatype array_of_datatypes[])
{
    MPI_Count none[1];
    int rc = check_not_large_count(get_recipe_or_named(datatype), "MPI_Type_get_contents_c");
    return rc ? rc
              : impl_Type_get_contents_c(datatype, max_integers, max_addresses, 0, max_datatypes,
                                         array_of_integers, array_of_addresses, none, array_of_datatypes);
}
