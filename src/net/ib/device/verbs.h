/* verbs.h: libibverbs as a table of functions. It is loaded, not linked, so that one binary runs with
 * hardware, with softib or with neither. Data-path verbs (post, poll, notify) are inline functions of
 * libibverbs' own header that use the device's table and need no symbol.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_VERBS_H
#define FP_NET_IB_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* verbs.h of rdma-core replaces these functions by macros. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

#define VERBS_FUNCTIONS(F)                                                                             \
    F(struct ibv_device **, get_device_list, (int *))                                                  \
    F(void, free_device_list, (struct ibv_device **))                                                  \
    F(const char *, get_device_name, (struct ibv_device *))                                            \
    F(struct ibv_context *, open_device, (struct ibv_device *))                                        \
    F(int, close_device, (struct ibv_context *))                                                       \
    F(int, query_device, (struct ibv_context *, struct ibv_device_attr *))                             \
    F(int, query_port, (struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *))                \
    F(int, query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *))                           \
    F(struct ibv_pd *, alloc_pd, (struct ibv_context *))                                               \
    F(int, dealloc_pd, (struct ibv_pd *))                                                              \
    F(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int))                                 \
    F(int, dereg_mr, (struct ibv_mr *))                                                                \
    F(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *))                          \
    F(int, destroy_comp_channel, (struct ibv_comp_channel *))                                          \
    F(struct ibv_cq *, create_cq, (struct ibv_context *, int, void *, struct ibv_comp_channel *, int)) \
    F(int, resize_cq, (struct ibv_cq *, int))                                                          \
    F(int, destroy_cq, (struct ibv_cq *))                                                              \
    F(int, get_cq_event, (struct ibv_comp_channel *, struct ibv_cq **, void **))                       \
    F(void, ack_cq_events, (struct ibv_cq *, unsigned))                                                \
    F(struct ibv_srq *, create_srq, (struct ibv_pd *, struct ibv_srq_init_attr *))                     \
    F(int, modify_srq, (struct ibv_srq *, struct ibv_srq_attr *, int))                                 \
    F(int, destroy_srq, (struct ibv_srq *))                                                            \
    F(struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))                        \
    F(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))                                    \
    F(int, destroy_qp, (struct ibv_qp *))                                                              \
    F(struct ibv_ah *, create_ah, (struct ibv_pd *, struct ibv_ah_attr *))                             \
    F(int, destroy_ah, (struct ibv_ah *))                                                              \
    F(int, attach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t))                           \
    F(int, detach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t))                           \
    F(int, get_async_event, (struct ibv_context *, struct ibv_async_event *))                          \
    F(void, ack_async_event, (struct ibv_async_event *))                                               \
    F(const char *, wc_status_str, (enum ibv_wc_status))                                               \
    F(const char *, event_type_str, (enum ibv_event_type))                                             \
    F(int, fork_init, (void))

/* Barriers in the switch, if the verbs library has them. All pointers are set, or none. verbs.c lists the
 * symbols in this order. */
struct verbs_barrier {
    int (*get_id)(uint32_t *id);
    void *(*join)(uint32_t id);
    int (*enter)(void *member);
    int (*test)(void *member);
    void (*leave)(void *member);
    int (*free)(uint32_t id);
};

/* Barrier networks: devices without ports that only perform barriers. All pointers are set, or none. hosts():
 * capacity of the network in hosts; 0 or less: the device has no barrier network. */
struct verbs_wires {
    int (*hosts)(struct ibv_context *device);
    int (*take)(struct ibv_context *device, uint32_t *job);
    int (*give_back)(struct ibv_context *device, uint32_t job);
    void *(*plug)(struct ibv_context *device, uint32_t job);
    int (*enter)(void *end);
    int (*test)(void *end);
    void (*unplug)(void *end);
};

struct verbs {
    void *library;
    bool softib; /* the library is softib, this project's software adapter */
#define VERBS_MEMBER(result, name, args) result(*name) args;
    VERBS_FUNCTIONS(VERBS_MEMBER)
#undef VERBS_MEMBER
    struct verbs_barrier barrier; /* performed by the switch */
    struct verbs_wires wires;
    /* Newer functions: NULL if the library is older. */
    struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);
    int (*query_qp_data_in_order)(struct ibv_qp *, enum ibv_wr_opcode, uint32_t);
    int (*query_gid_ex)(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t, size_t);
};

/* Loads the library at this path. Returns 0, or MPI_ERR_OTHER with a message. */
int verbs_load(const char *path, struct verbs *out);
void verbs_unload(struct verbs *v);

/* Returns the path of softib's library, from mpiexec or next to this library; "" if there is none. */
void verbs_softib_path(char *out, size_t size);

#endif
