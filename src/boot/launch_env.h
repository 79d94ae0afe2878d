/* launch_env.h: the variables that Fishplate's mpiexec sets for every rank, for launcher/ and src/boot.
 * src/boot uses them only if FISHPLATE_LAUNCHER is its own version and rank and size equal PMI_RANK and
 * PMI_SIZE: a job that a rank of another job started inherits the variables of that job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_LAUNCH_ENV_H
#define FP_BOOT_LAUNCH_ENV_H

#ifndef FISHPLATE_VERSION
#error "FISHPLATE_VERSION comes from mpi.h in the library and from the build in the launcher"
#endif

#define ENV_LAUNCHER   "FISHPLATE_LAUNCHER" /* version of the mpiexec */
#define ENV_JOB        "FISHPLATE_JOB"
#define ENV_WORLD_RANK "FISHPLATE_WORLD_RANK"
#define ENV_WORLD_SIZE "FISHPLATE_WORLD_SIZE"
#define ENV_LOCAL_RANK "FISHPLATE_LOCAL_RANK"
#define ENV_LOCAL_SIZE "FISHPLATE_LOCAL_SIZE"
#define ENV_UNIVERSE   "PMI_UNIVERSE_SIZE"
#define ENV_APPNUM     "PMI_APPNUM"
#define ENV_NODE_FD    "FISHPLATE_NODE_FD"
#define ENV_NODE_MAP   "FISHPLATE_NODE_MAP" /* nodemap.h; absent when longer than NODE_MAP_ENV_MAX */
#define ENV_HOST       "FISHPLATE_HOST"     /* the host's name as the user wrote it for mpiexec */
#define ENV_VNODE      "FISHPLATE_VNODE"    /* only with -vnodes */
#define ENV_TRACER     "FISHPLATE_TRACER"   /* process id of the common ancestor of all ranks of this host */
#define ENV_SEVERAL \
    "FISHPLATE_SEVERAL_NODES" /* of a spawned job: jobs connected with it are on other nodes */
#define ENV_ONE_MACHINE "FISHPLATE_ONE_MACHINE" /* all hosts of the job are this machine */
/* parents' port; set if PMIx or a singleton spawned the job */
#define ENV_PARENT "FISHPLATE_PARENT_PORT"
/* descriptor of the notice page (notice.h); only with recovery */
#define ENV_NOTICES    "FISHPLATE_NOTICES_FD"
#define ENV_SOFTIB_LIB "FISHPLATE_SOFTIB_LIB" /* path of softib's libibverbs.so.1, if it is installed */

/* Variables of softib: with -vnodes each virtual node is a node of a softib fabric, unless the user describes
 * another fabric. */
#define ENV_SOFTIB_FABRIC "SOFTIB_FABRIC"
#define ENV_SOFTIB_NODE   "SOFTIB_NODE"
#define ENV_SOFTIB_KEY    "SOFTIB_KEY" /* of a fabric over TCP: 32 hexadecimal digits */
#define ENV_SOFTIB_TRACER \
    "SOFTIB_PTRACER" /* process id of the common ancestor of all processes of the fabric */

#define NODE_MAP_ENV_MAX 16384

/* The local socket (abstract namespace) at which mpiexec answers queries about ranks of other hosts: this
 * prefix and the job's name. */
#define QUERY_NAME "fishplate-job-"

#endif
