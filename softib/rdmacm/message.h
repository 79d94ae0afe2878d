/* message.h: the messages between two connection managers. All have the same size.
 *
 *     active                                passive
 *     REQUEST   node, QP, private data --->
 *           <--- REPLY  QP, private data, or REJECT
 *     READY     (not for datagrams)   --->
 *     ...       DISCONNECT            <-->
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_RDMACM_MESSAGE_H
#define SOFTIB_RDMACM_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

enum message_type { MESSAGE_REQUEST = 1, MESSAGE_REPLY, MESSAGE_REJECT, MESSAGE_READY, MESSAGE_DISCONNECT };

#define MESSAGE_MAGIC       0x4d434253u
#define MESSAGE_VERSION     1
#define MESSAGE_PRIVATE_MAX 196
#define MESSAGE_BYTES       332
#define MESSAGE_MAX_NODES   4096

struct message {
    uint32_t magic;
    uint16_t version, type;
    uint32_t node; /* node of the sender */
    uint16_t ps, qp_type;
    uint32_t qp_num, qkey, psn;
    uint32_t status; /* REJECT: the reason */
    uint16_t family; /* IP version of the addresses below: 4 or 6 */
    uint16_t src_port, dst_port;
    uint16_t src_lid, dst_lid;
    uint16_t private_len;
    uint32_t src_gid_index, dst_gid_index;
    uint8_t src_ip[16], dst_ip[16];
    uint8_t src_gid[16], dst_gid[16];
    uint8_t mtu, responder_resources, initiator_depth, flow_control;
    uint8_t retry_count, rnr_retry_count, srq, unused;
    uint32_t ece_vendor, ece_options, ece_mask;
    uint8_t private_data[MESSAGE_PRIVATE_MAX];
};

_Static_assert(sizeof(struct message) == MESSAGE_BYTES, "a message has no padding");

void message_encode(const struct message *m, uint8_t out[MESSAGE_BYTES]);
/* Returns false if the bytes are not a valid message. */
bool message_decode(const uint8_t in[MESSAGE_BYTES], struct message *out);

/* Limit of the private data in a message of the type, in bytes. */
uint32_t message_private_limit(unsigned type, bool datagram);

#endif
