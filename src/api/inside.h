/* inside.h: the one symbol that libmpi_abi.so exports beside MPI: a table through which the `fishplate` tool
 * reads what the library is made of (tunables, counters, transports, collective algorithms, the list of
 * functions). It is for programs of the same version only: they compare `version` before they read anything
 * else.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_INSIDE_H
#define FP_API_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

struct api_entry;
struct coll_algorithm;
struct coll_rule;
struct coll_site_rule;
struct counter;
struct gpu_device;
struct io_hint_info;
struct net_port;
struct peer;
struct transport_ops;
struct tunable;

struct fishplate_inside {
    const char *version;
    size_t size; /* of this struct */

    /* tunable.h: load() reads the environment, report() prints what was wrong in it. */
    int (*tunables_load)(void);
    void (*tunables_report)(void);
    size_t (*tunables_count)(void);
    struct tunable *(*tunables_get)(size_t index);
    void (*tunable_format)(const struct tunable *t, char *out, size_t size);

    size_t (*counters_count)(void);
    struct counter *(*counters_get)(size_t index);

    const struct transport_ops *const *transports; /* best first, ends with NULL */

    /* Between MPI_Init and MPI_Finalize: how a rank of MPI_COMM_WORLD is reached; NULL when it cannot be. */
    const struct peer *(*peer)(int rank);
    void (*peer_describe)(const struct peer *peer, char *out, size_t size);

    /* The ports of this node's adapters (net/port.h), each with the reason why it is used or not; in a job as the job
     * chose, else as it would. An MPI error class, with a sentence in *why, when there is none. free(*ports). */
    int (*ports)(struct net_port **ports, size_t *count, const char **why);

    /* gpu_list_devices of gpu/gpu.h. */
    int (*gpus)(struct gpu_device **devices, size_t *count, int *driver, const char **why);

    /* enum gpu_memory_kind of gpu/gpu.h. */
    int (*memory_kind)(const void *address);

    size_t (*algorithms_count)(void);
    const struct coll_algorithm *(*algorithms_get)(size_t index);
    const char *(*coll_kind_name)(int kind);
    size_t (*coll_rules_count)(void); /* the selection: within a kind the first rule that holds wins */
    const struct coll_rule *(*coll_rules_get)(size_t index);

    /* The rules of the file that FISHPLATE_COLL names; valid until it is set again. An MPI error class, with a sentence in
     * *why, when it cannot be read. */
    int (*coll_site)(const struct coll_site_rule **rules, size_t *count, const char **why);

    /* Between MPI_Init and MPI_Finalize, for comparing algorithms: can this one do a blocking call with a
     * commutative operator on MPI_COMM_WORLD; and FISHPLATE_COLL as if it were this, from the next call on: the same
     * at all ranks. 0 or an MPI error class. */
    bool (*coll_usable)(const struct coll_algorithm *a);
    int (*coll_set)(const char *text);

    /* The info keys that files know (io/hints.h). */
    const struct io_hint_info *hints;
    size_t hints_count;

    const struct api_entry *api;
    size_t api_count;
};

__attribute__((visibility("default"))) const struct fishplate_inside *fishplate_inside(void);

#endif
