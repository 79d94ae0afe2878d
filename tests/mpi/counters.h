/* counters.h: reads the library's counters through MPI_T. A test opens them before MPI_Init, so that
 * events during MPI_Init count.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_MPI_COUNTERS_H
#define FP_TESTS_MPI_COUNTERS_H

#include "mpitest.h"

static MPI_T_pvar_session counters_session;

static inline void counters_begin(void)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&counters_session);
}

static inline MPI_T_pvar_handle counter_open(const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count;
    EXPECT_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(counters_session, index, NULL, &handle, &count);
    MPI_T_pvar_start(counters_session, handle);
    return handle;
}

static inline unsigned long long read_counter(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    EXPECT_EQ(MPI_T_pvar_read(counters_session, handle, &value), MPI_SUCCESS);
    return value;
}

static inline void counters_end(void)
{
    MPI_T_pvar_session_free(&counters_session);
    MPI_T_finalize();
}

#endif
