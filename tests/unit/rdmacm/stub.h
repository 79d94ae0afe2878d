/* stub.h: the answers of the substitute for librdmacm, and the calls that it has received.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_RDMACM_STUB_H
#define FP_TESTS_RDMACM_STUB_H

#include <stdint.h>

/* Copy of struct sockaddr_ib. */
struct stub_address {
    uint16_t family, partition;
    uint32_t flow;
    uint8_t gid[16];
    uint64_t service, service_mask, scope;
};

enum stub_answer { STUB_JOINS, STUB_REFUSES, STUB_NO_DEVICE };

struct stub {
    enum stub_answer answer;
    int fd, space;
    int channels, ids, joins, events; /* numbers of objects not released yet */
    struct stub_address bound, requested;
};
extern struct stub stub;

#endif
