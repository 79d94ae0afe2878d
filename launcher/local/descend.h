/* descend.h: finds and ends all descendants of this process, whatever sessions and process groups they
 * created. It works because the launcher is a subreaper: orphans of ranks become its children.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_DESCEND_H
#define FP_LAUNCHER_DESCEND_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes this process a subreaper, so that orphaned descendants become its children. Opens what the other
 * functions need; call again after a fork. */
void descend_become_subreaper(void);

/* Sends the signal to every descendant, or only to those in process groups for which has_group is true. A
 * group is not signalled by its number: after its end the number may belong to a process of another job. */
void descend_signal(int sig, bool (*has_group)(const void *ctx, pid_t group), const void *ctx);

/* Kills until no child is left, and reaps them all. Costs one system call if there is none. Returns false,
 * with a message, if one is left. */
bool descend_end(void);

#endif
