/* query.h: where `fishplate ps` and `fishplate why` query the pages of ranks on other hosts: a local socket with the job's name.
 * A connection is the query: no bytes are read from the caller, and only the job's user and root get an answer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_QUERY_H
#define FP_LAUNCHER_QUERY_H

#include "job/job.h"

/* Begins to accept queries. The hosts of the job must be known. */
void query_open(struct job *j);

/* A host has answered the query with this number. */
void query_handle_answer(struct job *j, uint32_t host, uint32_t number, const char *data, size_t len);

#endif
