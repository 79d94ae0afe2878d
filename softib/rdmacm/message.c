/* message.c: encodes, decodes and checks the messages between connection managers. Numbers are little-endian.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "message.h"
#include <endian.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static void message_swap_bytes(struct message *m)
{
    uint16_t *half[] = {&m->version,  &m->type,     &m->ps,      &m->qp_type, &m->family,
                        &m->src_port, &m->dst_port, &m->src_lid, &m->dst_lid, &m->private_len};
    uint32_t *word[] = {&m->magic,      &m->node,        &m->qp_num,        &m->qkey,
                        &m->psn,        &m->status,      &m->src_gid_index, &m->dst_gid_index,
                        &m->ece_vendor, &m->ece_options, &m->ece_mask};
    for (size_t i = 0; i < sizeof(half) / sizeof(*half); i++)
        *half[i] = htole16(*half[i]);
    for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++)
        *word[i] = htole32(*word[i]);
}

void message_encode(const struct message *m, uint8_t out[MESSAGE_BYTES])
{
    struct message copy = *m;
    copy.magic = MESSAGE_MAGIC;
    copy.version = MESSAGE_VERSION;
    message_swap_bytes(&copy);
    memcpy(out, &copy, MESSAGE_BYTES);
}

uint32_t message_private_limit(unsigned type, bool datagram)
{
    switch (type) {
    case MESSAGE_REQUEST:
        return datagram ? 180 : 56;
    case MESSAGE_REPLY:
        return datagram ? 136 : 196;
    case MESSAGE_REJECT:
        return datagram ? 136 : 148;
    default:
        return 0;
    }
}

static bool is_known_type(unsigned t)
{
    return t == IBV_QPT_RC || t == IBV_QPT_UC || t == IBV_QPT_UD || t == IBV_QPT_XRC_SEND ||
           t == IBV_QPT_XRC_RECV;
}

static bool is_known_port_space(unsigned ps)
{
    return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

bool message_decode(const uint8_t in[MESSAGE_BYTES], struct message *out)
{
    struct message m;
    memcpy(&m, in, sizeof(m));
    message_swap_bytes(&m);
    bool datagram = m.ps == RDMA_PS_UDP || m.ps == RDMA_PS_IPOIB;
    if (m.magic != MESSAGE_MAGIC || m.version != MESSAGE_VERSION || m.type < MESSAGE_REQUEST ||
        m.type > MESSAGE_DISCONNECT || !is_known_port_space(m.ps) || m.node >= MESSAGE_MAX_NODES ||
        m.private_len > message_private_limit(m.type, datagram))
        return false;
    if (m.type <= MESSAGE_REPLY &&
        (!is_known_type(m.qp_type) || datagram != (m.qp_type == IBV_QPT_UD) || m.qp_num >> 24 ||
         m.psn >> 24 || (m.family != 4 && m.family != 6) || m.mtu < IBV_MTU_256 || m.mtu > IBV_MTU_4096 ||
         m.retry_count > 7 || m.rnr_retry_count > 7))
        return false;
    *out = m;
    return true;
}
