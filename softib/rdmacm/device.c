/* device.c: the adapters of this node. They are opened once and remain open. All identifiers share them,
 * with a default protection domain and a default XRC domain.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static struct softib_place place;
static struct cm_device *devices;
static unsigned device_count;

static void open_all_devices(void)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    devices = calloc((size_t)n + 1, sizeof(*devices));
    for (int i = 0; devices && list && i < n; i++) {
        struct cm_device *d = &devices[device_count];
        d->verbs = ibv_open_device(list[i]);
        if (!d->verbs)
            continue;
        d->guid = ibv_get_device_guid(list[i]);
        /* Skips the device of the barrier network, which has no ports. */
        if (!ibv_query_device(d->verbs, &d->attr) && d->attr.phys_port_cnt)
            device_count++;
        else
            ibv_close_device(d->verbs);
    }
    if (list)
        ibv_free_device_list(list);
}

bool device_init(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool done;
    pthread_mutex_lock(&once);
    if (!done && softib_join(&place)) {
        done = true;
        open_all_devices();
    }
    pthread_mutex_unlock(&once);
    if (!device_count)
        errno = ENODEV;
    return device_count > 0;
}

const struct softib_place *device_get_place(void)
{
    return &place;
}

struct cm_device *device_find_by_guid(uint64_t node_guid)
{
    for (unsigned i = 0; i < device_count; i++)
        if (devices[i].guid == node_guid)
            return &devices[i];
    return NULL;
}

struct ibv_pd *device_pd(struct cm_device *d)
{
    if (!d->pd)
        d->pd = ibv_alloc_pd(d->verbs);
    return d->pd;
}

struct ibv_xrcd *device_xrcd(struct cm_device *d)
{
    struct ibv_xrcd_init_attr a = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    if (!d->xrcd)
        d->xrcd = ibv_open_xrcd(d->verbs, &a);
    return d->xrcd;
}

SOFTIB_API struct ibv_context **rdma_get_devices(int *num_devices)
{
    if (num_devices)
        *num_devices = 0;
    if (!device_init())
        return NULL;
    struct ibv_context **list = calloc(device_count + 1, sizeof(struct ibv_context *));
    for (unsigned i = 0; list && i < device_count; i++)
        list[i] = devices[i].verbs;
    if (list && num_devices)
        *num_devices = (int)device_count;
    return list;
}

SOFTIB_API void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}
