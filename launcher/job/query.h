/* query.h: serves the status pages of ranks on other hosts to `fishplate ps` and `fishplate why`, through a
 * local socket with the job's name. A connection is the query: no bytes are read from the caller, and only
 * the job's user and root get a reply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_QUERY_H
#define FP_LAUNCHER_QUERY_H

#include "job/job.h"

/* Begins to accept queries. The hosts of the job must be known. */
void query_open(struct job *j);

/* Forwards the reply of a host to the caller of the query with this number. */
void query_handle_answer(struct job *j, uint32_t host, uint32_t number, const char *data, size_t len);

#endif
