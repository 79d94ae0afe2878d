/* survey.h: lists the adapters and ports of a verbs library, with all properties that the choice of a port or
 * a user needs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_SURVEY_H
#define FP_NET_IB_SURVEY_H

#include "net/ib/device/verbs.h"
#include "net/adapter_port.h"

struct ib_survey {
    struct net_port *ports; /* allocated; the caller frees it */
    uint32_t count;
    uint32_t devices; /* number of devices that could be opened */
};

/* Lists every port of every device. 0, or MPI_ERR_NO_MEM. */
int ib_survey(const struct verbs *v, struct ib_survey *out);

/* Queries a port. The exported ibv_query_port fills only the first members of the structure; the function in
 * the context fills all. */
int ib_query_port(const struct verbs *v, struct ibv_context *context, int port, struct ibv_port_attr *out);

/* Updates *p from the port's attributes; device, port number and `place` must be set. */
void ib_survey_port(const struct verbs *v, struct ibv_context *context, const struct ibv_port_attr *a,
                    struct net_port *p);

/* Returns the first entry of FISHPLATE_IB_DEVICES that matches no port here, or NULL. */
const char *ib_survey_unknown_name(const struct ib_survey *s, size_t *len);

/* The value of FISHPLATE_IB_DEVICES. */
const char *ib_survey_device_list(void);

/* True if the list was set for this job. A list from a settings file may be meant for other hosts. */
bool ib_survey_names_are_typed(void);

#endif
