/* stub.h: the answers of the stand-in for librdmacm, and the calls it has seen.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_RDMACM_STUB_H
#define FP_TESTS_RDMACM_STUB_H

#include <stdint.h>

/* struct sockaddr_ib */
struct stub_address {
    uint16_t family, partition;
    uint32_t flow;
    uint8_t gid[16];
    uint64_t service, service_mask, scope;
};

enum stub_mood { STUB_JOINS, STUB_REFUSES, STUB_NO_DEVICE };

struct stub {
    enum stub_mood mood;
    int fd, space;
    int channels, ids, joins, events; /* not given back */
    struct stub_address bound, requested;
};
extern struct stub stub;

#endif
