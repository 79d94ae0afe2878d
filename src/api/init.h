/* init.h: the start and end of the library as users see it: the world model begins and ends once, sessions
 * begin and end at any time, and the process instance behind both is opened by the first user and closed by
 * the last.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_INIT_H
#define FP_API_INIT_H

#include <stdbool.h>

struct proc;

enum world_state { WORLD_NOT_YET, WORLD_RUNNING, WORLD_DONE };

enum world_state api_world_state(void);

/* True in a forked child of a process in which MPI was running. MPI does not work in it. */
bool api_is_forked_child(void);

/* Adds a user of the process instance; MPI_Init and MPI_Session_init add one each. *out is the instance. */
int api_instance_open(int thread_level, struct proc **out);
/* Ends one use of the instance; the last one closes it, after which the_proc is NULL. */
int api_instance_close(void);

/* Returns the lowest thread level of the standard that is at least `required`, else MPI_THREAD_MULTIPLE. */
int api_thread_level(int required);

#endif
