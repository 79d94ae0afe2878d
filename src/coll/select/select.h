/* select.h: selection of algorithms: the setting FISHPLATE_COLL, then the first matching rule of a site's
 * file, then of the built-in table. `fishplate info --coll` prints the rules with the functions below.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_SELECT_H
#define FP_COLL_SELECT_SELECT_H

#include "coll/sched/algorithm.h"

/* A rule applies to numbers of ranks and bytes within its bounds (inclusive) if its algorithm supports the
 * call. Bytes: of the vector for bcast and reductions, of one block otherwise. */
struct coll_rule {
    enum coll_kind kind;
    const char *algorithm;
    int min_size, max_size;        /* max 0: no limit */
    uint64_t min_bytes, max_bytes; /* max 0: no limit */
    uint64_t segment;              /* bytes, for algorithms that pipeline */
    int window;                    /* messages in flight, for algorithms that send to all ranks */
};

size_t coll_rules_count(void);
const struct coll_rule *coll_rules_get(size_t index);

struct coll_choice {
    const struct coll_algorithm *algorithm;
    uint64_t segment; /* bytes */
    int window;
    int parameter[COLL_PARAMETERS]; /* 0: preset of the algorithm */
    bool named;                     /* chosen by the user or by a measurement, not by a rule */
    bool lazy;                      /* barrier: opened only after several barriers by messages */
    /* barrier: `algorithm` is for the leaders of nodes; the ranks of a node use shared memory */
    bool by_node;
};

/* Input of the selection besides the shape; the same at every rank of the call. */
struct coll_where {
    uint64_t bytes;
    bool one_node;  /* all ranks can use the node's shared memory */
    bool nodes;     /* ranks are on several nodes, and each rank's node is known */
    int node_count; /* 0: not known */
};

/* Inclusive bounds in a rule of a site's file (site.h). */
struct coll_site_bounds {
    uint64_t min, max;
};
struct coll_site_rule {
    enum coll_kind kind;
    struct coll_site_bounds ranks, nodes, bytes;
    struct coll_choice choice;
    int line;
};
size_t coll_site_count(void);
const struct coll_site_rule *coll_site_get(size_t index);

/* Selects a choice; never fails, since the last rule of each kind fits every call. blocking: false
 * excludes executors that support only blocking calls. */
struct coll_choice coll_select(const struct coll_shape *shape, const struct coll_where *where, bool blocking);

/* Method for long data between ranks on one node: slots of shared memory; a read from the sender's memory
 * by the receiver; or a split copy, in which the sender writes one part while the receiver reads the rest.
 * Measured unless FISHPLATE_COLL names a method. */
enum coll_copy { COPY_MEASURED, COPY_SLOTS, COPY_READ, COPY_SPLIT };
enum coll_copy coll_copy_method(void);

/* True if reductions of the same data must give bitwise identical results in every run. */
bool coll_is_deterministic(void);

/* True if the choice may depend on measurements. */
bool coll_uses_measurements(void);

/* True if FISHPLATE_COLL names the algorithm of this kind. */
bool coll_is_forced(enum coll_kind kind);

/* Returns the smallest size in bytes above `bytes` for which another rule may apply. */
uint64_t coll_select_next(enum coll_kind kind, uint64_t bytes);

/* Parses FISHPLATE_COLL. Returns MPI_ERR_ARG with an error text that suggests the most similar word. */
int coll_select_open(void);

#endif
