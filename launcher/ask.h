/* ask.h: where `fishplate ps` and `fishplate why` ask for the pages of ranks on other hosts: a local socket with the job's name.
 * Calling is asking: nothing is read from whoever calls, and only the job's user and root get an answer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_ASK_H
#define FP_LAUNCHER_ASK_H

#include "job.h"

/* From now on questions are answered. The hosts must be there. */
void ask_open(struct job *j);

/* A host has answered. */
void ask_answered(struct job *j, uint32_t host, uint32_t question, const char *data, size_t len);

#endif
