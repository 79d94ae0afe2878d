/* pmix_abi.h: the part of PMIx's binary interface that the library uses. With it the library builds
 * without PMIx's headers and loads libpmix.so.2 at run time. The layouts have not changed since PMIx 2; a
 * test compares them with pmix.h if that is installed (tests/launcher/test_pmix_abi.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PMIX_ABI_H
#define FP_BOOT_PMIX_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys of the server's values about the job and the process. */
#define PX_JOB_SIZE   "pmix.job.size"
#define PX_UNIV_SIZE  "pmix.univ.size"
#define PX_NUM_NODES  "pmix.num.nodes"
#define PX_PACKED_MAP "pmix.anlmap" /* a node map as in nodemap.h; from Slurm only */
#define PX_HOSTNAME   "pmix.hname"
#define PX_APPNUM     "pmix.appnum"
/* Keys of programs to spawn. */
#define PX_HOST "pmix.host"
/* Directives of PMIx requests. */
#define PX_COLLECT  "pmix.collect"  /* bool: copy every rank's values to every node */
#define PX_OPTIONAL "pmix.optional" /* bool: do not query the server */
#define PX_IMMEDIATE \
    "pmix.immediate" /* bool: query the server, which replies at once if it does not have the key */

enum {
    PX_SUCCESS = 0,
    PX_ERR_NOT_FOUND = -46,
    PX_ERR_NOT_SUPPORTED = -47,
    PX_ERR_LOST_CONNECTION = -61,
    PX_OPERATION_SUCCEEDED = -157, /* done at once, no call back */
    PX_SCOPE_GLOBAL = 3,
};
#define PX_RANK_WILDCARD (UINT32_MAX - 1)

enum px_type {
    PX_BOOL = 1,
    PX_STRING = 3,
    PX_SIZE = 4,
    PX_INT = 6,
    PX_INT32 = 9,
    PX_INT64 = 10,
    PX_UINT = 11,
    PX_UINT16 = 13,
    PX_UINT32 = 14,
    PX_UINT64 = 15,
    PX_BYTE_OBJECT = 27,
    PX_PROC_RANK = 40,
};

struct px_proc {
    char nspace[256];
    uint32_t rank;
};

struct px_value {
    uint16_t type;
    union {
        bool flag;
        char *string;
        size_t size;
        int integer;
        int32_t int32;
        int64_t int64;
        unsigned uint;
        uint16_t uint16;
        uint32_t uint32;
        uint64_t uint64;
        struct {
            char *bytes;
            size_t size;
        } bo;
        struct {
            char *name, *value;
            char separator;
        } largest; /* never used */
    } data;
};

struct px_info {
    char key[512];
    uint32_t flags;
    struct px_value value;
};

struct px_app {
    char *cmd;
    char **argv, **env; /* argv[0] is the command; env: variables in addition to those of the launcher */
    char *cwd;
    int maxprocs;
    struct px_info *info;
    size_t ninfo;
};

typedef void (*px_spawned)(int status, char *nspace, void *ctx);
typedef int (*px_spawn_nb)(const struct px_info *info, size_t ninfo, const struct px_app *apps, size_t napps,
                           px_spawned done, void *ctx);

typedef void (*px_done)(int status, void *ctx);
/* An event handler that does not end the process must call this. */
typedef void (*px_handled)(int status, struct px_info *results, size_t nresults, px_done done, void *ctx,
                           void *event);
typedef void (*px_event)(size_t id, int status, const struct px_proc *source, struct px_info *info,
                         size_t ninfo, struct px_info *results, size_t nresults, px_handled handled,
                         void *event);
typedef void (*px_registered)(int status, size_t id, void *ctx);

#endif
