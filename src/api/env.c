/* env.c: queries of a program about its environment: versions, names, time, memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "impl.h"
#include "obj/info.h"

int impl_Get_library_version(char *version, int *resultlen)
{
    *resultlen =
        snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Fishplate %s, MPI %d.%d, standard ABI %d.%d",
                 FISHPLATE_VERSION, MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    return MPI_SUCCESS;
}

int impl_Get_processor_name(char *name, int *resultlen)
{
    *resultlen = snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", the_proc->boot->host);
    if (*resultlen >= MPI_MAX_PROCESSOR_NAME)
        *resultlen = MPI_MAX_PROCESSOR_NAME - 1;
    return MPI_SUCCESS;
}

double impl_Wtime(void)
{
    return 1e-9 * (double)clock_ns();
}

double impl_Wtick(void)
{
    struct timespec tick;
    clock_getres(CLOCK_MONOTONIC, &tick);
    return (double)tick.tv_sec + 1e-9 * (double)tick.tv_nsec;
}

int impl_Pcontrol(int level)
{
    (void)level; /* profiling tools replace this function */
    return MPI_SUCCESS;
}

/* The alignment requested by the info key if it is a power of two; otherwise a cache line. */
static size_t alloc_alignment(struct info *info)
{
    const char *text = info ? info_get(info, "mpi_minimum_memory_alignment") : NULL;
    int64_t requested;
    return text && tunable_parse_number(text, false, &requested) && requested > CACHE_LINE &&
                   (requested & (requested - 1)) == 0
               ? (size_t)requested
               : CACHE_LINE;
}

int impl_Alloc_mem(MPI_Aint size, struct info *info, void *baseptr)
{
    size_t alignment = alloc_alignment(info);
    /* An allocation of 0 bytes also has a unique address, so that MPI_Free_mem needs no special case. */
    void *memory = aligned_alloc(alignment, ALIGN_UP((size_t)MAX(size, 1), alignment));
    if (!memory)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %lld bytes, aligned to %zu", (long long)size,
                       alignment);
    *(void **)baseptr = memory;
    return MPI_SUCCESS;
}

int impl_Free_mem(void *base)
{
    free(base);
    return MPI_SUCCESS;
}

/* Addresses are added as unsigned numbers: those above the middle of the range are negative as MPI_Aint. */
MPI_Aint impl_Aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_Aint impl_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
