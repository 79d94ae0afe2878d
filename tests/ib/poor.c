/* poor.c: a simulated adapter that lacks features: a libibverbs, named in FISHPLATE_VERBS, that wraps softib's
 * libibverbs and removes the features that these variables select. All other functions are those of softib.
 *     POOR_INLINE=n   largest inline request; more is refused, as by some adapters
 *     POOR_QP_WR=n    entries of a queue
 *     POOR_SRQ_WR=n   entries of a shared receive queue
 *     POOR_CQS=n      completion queues in all
 *     POOR_READS=n    RDMA reads a queue pair can have in flight
 *     POOR_USER=n     simultaneous registrations of memory that peers may read (the user's memory)
 *     POOR_BUFFERS=n  registrations of other memory in all
 *     POOR_RAILS=1    each adapter of a node is in a separate subnet, without a path between them
 *     POOR_LINKS="a b" kind and rate of each adapter's ports, by its number: ib100, ib400, eth25
 *     POOR_HIDE=n:name node n has no adapter of that name
 *     POOR_POLL=n     completions returned per poll: most completions wait long before they are polled
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"

#undef ibv_reg_mr

#define USER_MAX 1024

static long get_limit(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static int at_most(int value, const char *name)
{
    long most = get_limit(name, value);
    return most < value ? (int)most : value;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
    int (*query)(struct ibv_context *, struct ibv_device_attr *) = find_real_function("ibv_query_device");
    int rc = query(context, a);
    a->max_qp_wr = at_most(a->max_qp_wr, "POOR_QP_WR");
    a->max_srq_wr = at_most(a->max_srq_wr, "POOR_SRQ_WR");
    a->max_qp_rd_atom = at_most(a->max_qp_rd_atom, "POOR_READS");
    a->max_qp_init_rd_atom = at_most(a->max_qp_init_rd_atom, "POOR_READS");
    return rc;
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    int (*query)(struct ibv_context *, uint8_t, int, union ibv_gid *) = find_real_function("ibv_query_gid");
    int rc = query(context, port, index, gid);
    const char *name = context->device->name; /* softib0, softib1 */
    if (rc == 0 && get_limit("POOR_RAILS", 0))
        gid->raw[7] = (uint8_t)name[strlen(name) - 1];
    return rc;
}

/* ---- number and kind of the adapters ---- */

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **(*get)(int *) = find_real_function("ibv_get_device_list"), **list = get(count);
    const char *hide = getenv("POOR_HIDE"), *node = getenv("SOFTIB_NODE");
    const char *name = hide && node && atoi(hide) == atoi(node) ? strchr(hide, ':') : NULL;
    int kept = 0;
    for (int i = 0; name && list && list[i]; i++)
        if (strcmp(list[i]->name, name + 1) != 0)
            list[kept++] = list[i];
    if (name && list) {
        list[kept] = NULL;
        if (count)
            *count = kept;
    }
    return list;
}

typedef int query_port(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
static query_port *real_query_port;

/* Reports the link of POOR_LINKS, which has one word for each adapter. */
static int query_port_with_link(struct ibv_context *context, uint8_t port, struct ibv_port_attr *a,
                                size_t size)
{
    /* values of ibv_port_attr.active_width and active_speed in the verbs API */
    enum { ONE_LANE = 1, FOUR_LANES = 2, LANE_25 = 32, LANE_100 = 128 };
    const char *name = context->device->name, *word = getenv("POOR_LINKS");
    int rc = real_query_port(context, port, a, size);
    for (int number = name[strlen(name) - 1] - '0'; word && number > 0; number--)
        word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL;
    if (rc != 0 || !word)
        return rc;
    bool ethernet = strncmp(word, "eth", 3) == 0;
    a->link_layer = ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    a->active_width = ethernet ? ONE_LANE : FOUR_LANES;
    a->active_speed = strncmp(word, "ib400", 5) == 0 ? LANE_100 : LANE_25;
    return rc;
}

typedef int poll_cq(struct ibv_cq *, int, struct ibv_wc *);
static poll_cq *real_poll_cq;

static int poll_at_most(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    return real_poll_cq(cq, at_most(n, "POOR_POLL"), wc);
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *(*open)(struct ibv_device *) = find_real_function("ibv_open_device"),
                                                  *context = open(device);
    struct verbs_context *newer = context && getenv("POOR_LINKS") ? verbs_get_ctx(context) : NULL;
    if (newer && newer->query_port && newer->query_port != query_port_with_link) {
        real_query_port = newer->query_port;
        newer->query_port = query_port_with_link;
    }
    if (context && getenv("POOR_POLL") && context->ops.poll_cq != poll_at_most) {
        real_poll_cq = context->ops.poll_cq;
        context->ops.poll_cq = poll_at_most;
    }
    return context;
}

/* ---- limits of the adapters ---- */

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector)
{
    struct ibv_cq *(*create)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int) =
        find_real_function("ibv_create_cq");
    static long made;
    if (made++ >= get_limit("POOR_CQS", LONG_MAX)) {
        errno = EMFILE;
        return NULL;
    }
    return create(context, entries, cq_context, channel, vector);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) =
        find_real_function("ibv_create_qp");
    long inlined = get_limit("POOR_INLINE", 1 << 20), entries = get_limit("POOR_QP_WR", 1 << 20);
    if (a->cap.max_inline_data > inlined || a->cap.max_send_wr > entries || a->cap.max_recv_wr > entries) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_qp *qp = create(pd, a);
    if (qp && a->cap.max_inline_data > inlined)
        a->cap.max_inline_data = (uint32_t)inlined;
    return qp;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    struct ibv_srq *(*create)(struct ibv_pd *, struct ibv_srq_init_attr *) =
        find_real_function("ibv_create_srq");
    if (a->attr.max_wr > get_limit("POOR_SRQ_WR", 1 << 20)) {
        errno = EINVAL;
        return NULL;
    }
    return create(pd, a);
}

/* Registrations of the user's memory, recorded for ibv_dereg_mr. */
static struct ibv_mr *user[USER_MAX];
static long buffers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns a free entry for another registration, or NULL. */
static struct ibv_mr **find_free_entry(void)
{
    long most = get_limit("POOR_USER", USER_MAX);
    for (long i = 0; i < most && i < USER_MAX; i++)
        if (!user[i])
            return &user[i];
    return NULL;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) = find_real_function("ibv_reg_mr");
    bool mine = access & IBV_ACCESS_REMOTE_READ;
    struct ibv_mr *mr = NULL, **place = NULL;
    pthread_mutex_lock(&lock);
    errno = ENOMEM;
    if (mine ? (place = find_free_entry()) != NULL : buffers < get_limit("POOR_BUFFERS", LONG_MAX))
        mr = reg(pd, address, length, access);
    if (mr && place)
        *place = mr;
    buffers += mr && !mine;
    pthread_mutex_unlock(&lock);
    return mr;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    int (*dereg)(struct ibv_mr *) = find_real_function("ibv_dereg_mr");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < USER_MAX; i++)
        if (user[i] == mr)
            user[i] = NULL;
    pthread_mutex_unlock(&lock);
    return dereg(mr);
}
