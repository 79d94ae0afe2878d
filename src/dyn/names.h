/* names.h: MPI_Publish_name and related functions: a private folder of this user, with one file for each
 * published name. Jobs of different mpiexecs find each other through this folder. A process that can read the
 * folder knows the keys of the ports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_NAMES_H
#define FP_DYN_NAMES_H

struct dyn;
struct proc;

int name_publish(struct proc *p, const char *service, const char *port);
int name_unpublish(struct proc *p, const char *service, const char *port);
/* Looks up a name. `port` has room for MPI_MAX_PORT_NAME characters. */
int name_lookup(struct proc *p, const char *service, char *port);

/* Unpublishes all names that this process has published. */
void names_close(struct dyn *d);

#endif
