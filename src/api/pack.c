/* pack.c: MPI_Pack and MPI_Unpack, in the process's own representation and in external32.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/checked.h"
#include "dt/device_pack.h"
#include "dt/dtype.h"
#include "dt/external.h"
#include "impl.h"

static int check_room(MPI_Count size, MPI_Count position, MPI_Count wanted, const char *buffer)
{
    if (position < 0)
        return err_set(MPI_ERR_ARG, "position is %lld; it must not be negative", (long long)position);
    if (size - position < wanted)
        return err_set(MPI_ERR_TRUNCATE, "%lld bytes are needed from position %lld of %s, which has %lld",
                       (long long)wanted, (long long)position, buffer, (long long)size);
    return 0;
}

static int packed_size(MPI_Count each, MPI_Count count, MPI_Count *size)
{
    if (!checked_mul(each, count, size))
        return err_set(MPI_ERR_COUNT, "%lld elements of %lld bytes are more than 2^63 bytes",
                       (long long)count, (long long)each);
    return 0;
}

int impl_Pack_size(MPI_Count incount, struct dtype *datatype, struct comm *comm, MPI_Count *size)
{
    return packed_size(datatype->size, incount, size);
}

int impl_Pack(const void *inbuf, MPI_Count incount, struct dtype *datatype, void *outbuf, MPI_Count outsize,
              MPI_Count *position, struct comm *comm)
{
    MPI_Count bytes;
    int rc = packed_size(datatype->size, incount, &bytes);
    if (!rc)
        rc = check_room(outsize, *position, bytes, "outbuf");
    if (rc)
        return rc;
    rc = dt_copy(inbuf, incount, datatype, ptr_add(outbuf, *position), bytes, dtype_from_handle(MPI_PACKED));
    *position += rc ? 0 : bytes;
    return rc;
}

int impl_Unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                struct dtype *datatype, struct comm *comm)
{
    MPI_Count bytes;
    int rc = packed_size(datatype->size, outcount, &bytes);
    if (!rc)
        rc = check_room(insize, *position, bytes, "inbuf");
    if (rc)
        return rc;
    rc = dt_copy(ptr_add(inbuf, *position), bytes, dtype_from_handle(MPI_PACKED), outbuf, outcount, datatype);
    *position += rc ? 0 : bytes;
    return rc;
}

static int check_datarep(const char *datarep)
{
    if (strcmp(datarep, "external32") == 0)
        return 0;
    return err_set(MPI_ERR_UNSUPPORTED_DATAREP, "datarep is \"%s\"; only \"external32\" is known", datarep);
}

static int external_bytes(const char *datarep, MPI_Count count, const struct dtype *t, MPI_Count *bytes)
{
    int rc = check_datarep(datarep);
    return rc ? rc : packed_size(dt_external_size(t, 1), count, bytes);
}

int impl_Pack_external_size(const char *datarep, MPI_Count incount, struct dtype *datatype, MPI_Count *size)
{
    return external_bytes(datarep, incount, datatype, size);
}

/* Converts between typed data and external32, both in memory of any kind. */
static int convert_external(void *buffer, MPI_Count count, struct dtype *t, void *packed, MPI_Count bytes,
                            bool decodes)
{
    struct dtype *const byte = dtype_from_handle(MPI_BYTE);
    struct dt_host_copy data, dense;
    const int failed = dt_host_copy_open(&data, buffer, count, t);
    int rc = dt_host_copy_open(&dense, packed, bytes, byte);
    rc = failed ? failed : rc;
    if (!rc && decodes) {
        dt_external_unpack(t, count, data.buffer, dense.buffer, (uint64_t)bytes);
        rc = dt_host_copy_store(&data, buffer, count, t);
    } else if (!rc) {
        rc = dt_external_pack(t, count, data.buffer, dense.buffer);
        rc = rc ? rc : dt_host_copy_store(&dense, packed, bytes, byte);
    }
    dt_host_copy_close(&data);
    dt_host_copy_close(&dense);
    return rc;
}

int impl_Pack_external(const char *datarep, const void *inbuf, MPI_Count incount, struct dtype *datatype,
                       void *outbuf, MPI_Count outsize, MPI_Count *position)
{
    MPI_Count bytes;
    int rc = external_bytes(datarep, incount, datatype, &bytes);
    if (!rc)
        rc = check_room(outsize, *position, bytes, "outbuf");
    if (!rc)
        rc = convert_external((void *)(uintptr_t)inbuf, incount, datatype, ptr_add(outbuf, *position), bytes,
                              false);
    if (!rc)
        *position += bytes;
    return rc;
}

int impl_Unpack_external(const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count *position,
                         void *outbuf, MPI_Count outcount, struct dtype *datatype)
{
    MPI_Count bytes;
    int rc = external_bytes(datarep, outcount, datatype, &bytes);
    if (!rc)
        rc = check_room(insize, *position, bytes, "inbuf");
    if (!rc)
        rc = convert_external(outbuf, outcount, datatype, ptr_add(inbuf, *position), bytes, true);
    if (!rc)
        *position += bytes;
    return rc;
}
