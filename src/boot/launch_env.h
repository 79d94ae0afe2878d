/* launch_env.h: the variables that our mpiexec sets for every rank: the contract between launcher/ and
 * src/boot. Both include it, so that a name is written once. The values are used only when FISHPLATE_LAUNCHER
 * is our own version and the rank and size agree with PMI_RANK and PMI_SIZE (a job inside a job leaves stale
 * values behind).
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
#define ENV_TRACER     "FISHPLATE_TRACER" /* the process that started all ranks of this host: their ancestor */
#define ENV_SEVERAL \
    "FISHPLATE_SEVERAL_NODES" /* of a job that was spawned: others it belongs with are on other nodes */
#define ENV_ONE_MACHINE "FISHPLATE_ONE_MACHINE" /* all hosts of the job are this machine */
#define ENV_PARENT \
    "FISHPLATE_PARENT_PORT" /* of a job that was spawned by PMIx or by a single process: set by its parents, not by mpiexec */
#define ENV_NOTICES \
    "FISHPLATE_NOTICES_FD" /* in jobs with recovery: descriptor of the notices of deaths (notice.h) */
#define ENV_SOFTIB_LIB "FISHPLATE_SOFTIB_LIB" /* the libibverbs.so.1 of softib, where there is one */

/* softib's own: with -vnodes each virtual node is a node of a fabric, unless the user describes another. */
#define ENV_SOFTIB_FABRIC "SOFTIB_FABRIC"
#define ENV_SOFTIB_NODE   "SOFTIB_NODE"
#define ENV_SOFTIB_KEY    "SOFTIB_KEY"     /* of a fabric over TCP: 32 hexadecimal digits */
#define ENV_SOFTIB_TRACER "SOFTIB_PTRACER" /* the process from which all members of the fabric descend */

#define NODE_MAP_ENV_MAX 16384

/* The local socket (abstract namespace) at which mpiexec answers queries about ranks of other hosts: this
 * prefix and the job's name. */
#define QUERY_NAME "fishplate-job-"

#endif
