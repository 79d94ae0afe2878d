/* datarep.c: the data representations, and conversions between memory and file. Each conversion processes the
 * data of a whole access.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/datarep.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "dt/build.h"
#include "dt/count.h"
#include "dt/external.h"
#include "dt/walk.h"

static const struct datarep builtin[] = {
    {.name = "native", .kind = DATAREP_NATIVE},
    {.name = "internal", .kind = DATAREP_NATIVE},
    {.name = "external32", .kind = DATAREP_EXTERNAL32},
};

/* A name stays registered for the life of the process (MPI-5.0, 14.5.3), so the list only grows. */
static struct {
    pthread_mutex_t lock;
    struct datarep *first;
} registered = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct datarep *datarep_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(builtin); i++)
        if (strcmp(builtin[i].name, name) == 0)
            return &builtin[i];
    pthread_mutex_lock(&registered.lock);
    const struct datarep *rep = registered.first;
    while (rep && strcmp(rep->name, name) != 0)
        rep = rep->next;
    pthread_mutex_unlock(&registered.lock);
    return rep;
}

int datarep_register(const struct datarep *rep)
{
    if (datarep_find(rep->name))
        return err_set(MPI_ERR_DUP_DATAREP, "the data representation '%s' exists already", rep->name);
    struct datarep *copy = malloc(sizeof(*copy));
    if (!copy)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the data representation '%s'", rep->name);
    *copy = *rep;
    pthread_mutex_lock(&registered.lock);
    copy->next = registered.first;
    registered.first = copy;
    pthread_mutex_unlock(&registered.lock);
    return 0;
}

/* The size of a predefined type in the file; the user's extent function reports it for representations of
 * the user. */
static int get_basic_size(const struct datarep *rep, struct dtype *t, int64_t *size)
{
    if (rep->kind == DATAREP_NATIVE) {
        *size = t->size;
        return 0;
    }
    if (rep->kind == DATAREP_EXTERNAL32) {
        *size = dt_external_size(t, 1);
        return 0;
    }
    MPI_Aint extent = 0;
    const int rc = rep->extent(dtype_handle(t), &extent, rep->extra);
    *size = extent;
    if (rc == MPI_SUCCESS && extent > 0)
        return 0;
    return err_set(MPI_ERR_CONVERSION,
                   "the extent function of the data representation '%s' returned %d and said that %s has "
                   "%lld bytes in the file",
                   rep->name, rc, t->name, (long long)extent);
}

static int report_size_overflow(const struct datarep *rep)
{
    return err_set(MPI_ERR_CONVERSION,
                   "the datatype would have more than 2^63 bytes in the data representation '%s'", rep->name);
}

int datarep_file_size(const struct datarep *rep, struct dtype *t, int64_t *size)
{
    *size = t->size;
    if (!datarep_converts(rep) || t->size == 0)
        return 0;
    if (!t->shape || t->obj.predefined)
        return get_basic_size(rep, t, size);
    int64_t sum = 0;
    for (MPI_Count i = 0; i < t->shape->count; i++) {
        int64_t one = 0;
        const int rc = datarep_file_size(rep, t->shape->part[i].type, &one);
        if (rc)
            return rc;
        if (!checked_mul_add(one, t->shape->part[i].count, sum, &sum))
            return report_size_overflow(rep);
    }
    return checked_mul(sum, t->shape->repeat, size) ? 0 : report_size_overflow(rep);
}

int datarep_file_extent(const struct datarep *rep, struct dtype *t, MPI_Count *extent)
{
    struct dtype *in_file;
    int rc = datarep_file_type(rep, t, &in_file);
    if (rc)
        return rc;
    *extent = in_file->extent;
    dtype_release(in_file);
    return 0;
}

static int report_user_error(const struct datarep *rep, const char *which, int rc)
{
    return err_set(MPI_ERR_CONVERSION,
                   "the %s conversion function of the data representation '%s' returned %d", which, rep->name,
                   rc);
}

/* Calls a conversion function of the user, without the process's lock. These functions count items of
 * predefined types, not elements of `t` (MPI-5.0, 14.5.3), in an int unless they were registered by the
 * large-count function. */
static int call_user_function(struct proc *p, const struct datarep *rep, bool write, struct dtype *t,
                              MPI_Count items, void *memory, void *in_file)
{
    const char *which = write ? "write" : "read";
    if (!rep->large && items > INT_MAX)
        return err_set(MPI_ERR_CONVERSION,
                       "%lld items are too many for the %s conversion function of the data representation "
                       "'%s'; register it with MPI_Register_datarep_c",
                       (long long)items, which, rep->name);
    const MPI_Datatype type = dtype_handle(t);
    proc_unlock(p);
    const int rc =
        rep->large
            ? (write ? rep->write.large : rep->read.large)(memory, type, items, in_file, 0, rep->extra)
            : (write ? rep->write.small : rep->read.small)(memory, type, (int)items, in_file, 0, rep->extra);
    proc_lock(p);
    return rc ? report_user_error(rep, which, rc) : 0;
}

/* For MPI_CONVERSION_FN_NULL: data in the file has the format of memory, so the extent function must
 * report the same sizes. */
static int check_native(const struct datarep *rep, struct dtype *t, MPI_Count count, uint64_t length)
{
    if ((uint64_t)(count * t->size) == length)
        return 0;
    return err_set(MPI_ERR_CONVERSION,
                   "the data representation '%s' has no function to convert this access, but other sizes in "
                   "the file (%llu bytes) than in memory (%lld)",
                   rep->name, (unsigned long long)length, (long long)(count * t->size));
}

int datarep_pack(struct proc *p, const struct datarep *rep, struct dtype *t, MPI_Count count,
                 const void *buffer, void *out, uint64_t length)
{
    if (rep->kind == DATAREP_EXTERNAL32)
        return dt_external_pack(t, count, buffer, out);
    if (rep->write.small)
        return call_user_function(p, rep, true, t, count * t->elements, (void *)(uintptr_t)buffer, out);
    const int rc = check_native(rep, t, count, length);
    if (!rc)
        dt_pack_all(t, count, buffer, out);
    return rc;
}

/* The elements that a read obtained completely, if it ended inside of one. */
struct prefix {
    const struct datarep *rep;
    int64_t left;    /* bytes of the file behind the elements counted so far */
    MPI_Count bytes; /* size in memory of the elements counted so far */
};

static int visit_count_prefix(void *context, struct dtype *basic, MPI_Count count, char *at)
{
    struct prefix *x = context;
    int64_t size = 0;
    (void)at;
    if (get_basic_size(x->rep, basic, &size) || size == 0)
        return 1;
    const MPI_Count whole = MIN(count, x->left / size);
    x->left -= whole * size;
    x->bytes += whole * basic->size;
    return whole < count;
}

int datarep_unpack(struct proc *p, const struct datarep *rep, struct dtype *t, MPI_Count count, void *buffer,
                   void *in, uint64_t length, uint64_t have, MPI_Count *bytes)
{
    struct prefix x = {.rep = rep, .left = (int64_t)have};
    if (rep->kind == DATAREP_EXTERNAL32) {
        *bytes = dt_external_unpack(t, count, buffer, in, have);
        return 0;
    }
    *bytes = count * t->size;
    if (have < length) {
        dt_walk(t, count, buffer, WALK_PREDEFINED, visit_count_prefix, &x);
        *bytes = x.bytes;
    }
    if (rep->read.small) {
        MPI_Count items = 0;
        dt_get_elements(t, *bytes, &items);
        return items > 0 ? call_user_function(p, rep, false, t, items, buffer, in) : 0;
    }
    const int rc = check_native(rep, t, count, length);
    if (!rc)
        dt_unpack_all(t, count, buffer, in, (size_t)*bytes);
    return rc;
}
