/* inside.h: the one symbol that libmpi_abi.so exports besides the MPI functions: a table through which the
 * `fishplate` tool reads the parts of the library (tunables, transports, collective algorithms, the
 * list of functions). Only programs of the same version may use the table: they compare `version` before they
 * read other members.
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

    const struct transport_ops *const *transports; /* in order of preference, ends with NULL */

    /* The peer object of a rank of MPI_COMM_WORLD, between MPI_Init and MPI_Finalize; NULL: unreachable. */
    const struct peer *(*peer)(int rank);
    void (*peer_describe)(const struct peer *peer, char *out, size_t size);

    /* Lists the ports of this node's adapters (net/adapter_port.h), each with the reason why the job uses it or not;
     * outside of a job, why a job would use it or not. Returns an MPI error class, with a message in *why, if
     * there is no port. The caller frees *ports. */
    int (*ports)(struct net_port **ports, size_t *count, const char **why);

    /* gpu_list_devices() of gpu/gpu.h. */
    int (*gpus)(struct gpu_device **devices, size_t *count, int *driver, const char **why);

    /* Returns the enum gpu_memory_kind (gpu/gpu.h) of the memory at an address. */
    int (*memory_kind)(const void *address);

    size_t (*algorithms_count)(void);
    const struct coll_algorithm *(*algorithms_get)(size_t index);
    const char *(*coll_kind_name)(int kind);
    /* Rules of the algorithm selection: the first rule that applies to a call is used. */
    size_t (*coll_rules_count)(void);
    const struct coll_rule *(*coll_rules_get)(size_t index);

    /* Returns the rules of the file that FISHPLATE_COLL names, valid until FISHPLATE_COLL is set again.
     * Returns an MPI error class, with a message in *why, if the file cannot be read. */
    int (*coll_site)(const struct coll_site_rule **rules, size_t *count, const char **why);

    /* Called between MPI_Init and MPI_Finalize to compare algorithms. coll_usable() returns true if the
     * algorithm can execute a blocking call with a commutative operator on MPI_COMM_WORLD. coll_set() sets
     * FISHPLATE_COLL to `text` from the next call on; all ranks must pass the same text. It returns 0 or an
     * MPI error class. */
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
