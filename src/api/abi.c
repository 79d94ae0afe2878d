/* abi.c: queries of a program about the binary interface (MPI-5.0, chapter 20). The properties of Fortran are
 * fixed when the library is built: INTEGER is a C int, .TRUE. is 1. A program may set these values, and no
 * others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "impl.h"
#include "obj/info.h"

struct fact {
    const char *key, *value;
};

static const struct fact c_facts[] = {
    {"mpi_aint_size", "8"},
    {"mpi_count_size", "8"},
    {"mpi_offset_size", "8"},
};
_Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8, "see c_facts");

/* Values of gfortran on 64-bit machines. gfortran has no half-precision reals, but the library supports their
 * datatypes (MPI_Type_size, MPI_Type_match_size, messages) for languages that have them. */
static const struct fact fortran_facts[] = {
    {"mpi_logical_size", "4"},
    {"mpi_integer_size", "4"},
    {"mpi_real_size", "4"},
    {"mpi_double_precision_size", "8"},
    {"mpi_logical1_supported", "true"},
    {"mpi_logical2_supported", "true"},
    {"mpi_logical4_supported", "true"},
    {"mpi_logical8_supported", "true"},
    {"mpi_logical16_supported", "true"},
    {"mpi_integer1_supported", "true"},
    {"mpi_integer2_supported", "true"},
    {"mpi_integer4_supported", "true"},
    {"mpi_integer8_supported", "true"},
    {"mpi_integer16_supported", "true"},
    {"mpi_real2_supported", "true"},
    {"mpi_real4_supported", "true"},
    {"mpi_real8_supported", "true"},
    {"mpi_real16_supported", "true"},
    {"mpi_complex4_supported", "true"},
    {"mpi_complex8_supported", "true"},
    {"mpi_complex16_supported", "true"},
    {"mpi_complex32_supported", "true"},
    {"mpi_double_complex_supported", "true"},
};

static int facts_to_info(const struct fact *facts, size_t count, MPI_Info *out)
{
    struct info *info;
    int rc = info_create(&info);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < count; i++)
        rc = info_set(info, facts[i].key, facts[i].value);
    if (rc)
        info_release(info);
    else
        *out = info_handle(info);
    return rc;
}

int impl_Abi_get_info(MPI_Info *info)
{
    return facts_to_info(c_facts, COUNT_OF(c_facts), info);
}

int impl_Abi_get_fortran_info(MPI_Info *info)
{
    return facts_to_info(fortran_facts, COUNT_OF(fortran_facts), info);
}

int impl_Abi_set_fortran_info(MPI_Info handle)
{
    struct info *info = info_from(the_proc, handle);
    if (!info)
        return err_set(MPI_ERR_INFO, "info is not an info object");
    for (size_t i = 0; i < COUNT_OF(fortran_facts); i++) {
        const struct fact *fact = &fortran_facts[i];
        const char *value = info_get(info, fact->key);
        if (value && strcmp(value, fact->value) != 0)
            return err_set(MPI_ERR_ABI, "%s cannot be set to %s: this library was built for %s", fact->key,
                           value, fact->value);
    }
    return MPI_SUCCESS;
}

/* Stores the bytes of .TRUE. and .FALSE. of a LOGICAL of `size` bytes. Returns false for other sizes. */
static bool abi_logical_values(int size, unsigned char truth[16], unsigned char falsehood[16])
{
    if (size != 1 && size != 2 && size != 4 && size != 8 && size != 16)
        return false;
    const uint16_t one = 1;
    bool little_endian = *(const unsigned char *)&one == 1;
    memset(truth, 0, 16);
    memset(falsehood, 0, 16);
    truth[little_endian ? 0 : size - 1] = 1;
    return true;
}

int impl_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set)
{
    unsigned char truth[16], falsehood[16];
    if (!abi_logical_values(logical_size, truth, falsehood))
        return err_set(MPI_ERR_ARG, "logical_size is %d; LOGICAL has 1, 2, 4, 8 or 16 bytes", logical_size);
    memcpy(logical_true, truth, (size_t)logical_size);
    memcpy(logical_false, falsehood, (size_t)logical_size);
    *is_set = 1;
    return MPI_SUCCESS;
}

int impl_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
    unsigned char truth[16], falsehood[16];
    if (!abi_logical_values(logical_size, truth, falsehood))
        return err_set(MPI_ERR_ARG, "logical_size is %d; LOGICAL has 1, 2, 4, 8 or 16 bytes", logical_size);
    if (memcmp(logical_true, truth, (size_t)logical_size) ||
        memcmp(logical_false, falsehood, (size_t)logical_size))
        return err_set(MPI_ERR_ABI, "this library was built for .TRUE. = 1 and .FALSE. = 0");
    return MPI_SUCCESS;
}
