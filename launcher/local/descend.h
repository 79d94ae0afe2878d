/* descend.h: finds and ends all descendants of this process, whatever sessions and process groups they
 * created. It works because the launcher is a subreaper: orphans of ranks become its children.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_DESCEND_H
#define FP_LAUNCHER_DESCEND_H

#include <stdbool.h>

/* Makes this process a subreaper, so that orphaned descendants become its children. Opens what the other
 * functions need; call again after a fork. */
void descend_adopt(void);

/* Sends the signal to every descendant. */
void descend_signal(int sig);

/* SIGKILL until no child is left; collects them all. Costs one system call when there is none. False, with a sentence,
 * when one is left all the same. */
bool descend_end(void);

#endif
