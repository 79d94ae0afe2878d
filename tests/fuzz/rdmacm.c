/* rdmacm.c: fuzzes the messages of softib's connection manager, singly and in pieces through a socket.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "softib/rdmacm/link.h"
#include "softib/address.h"
#include "fuzz.h"
#include <infiniband/verbs.h>
#include <unistd.h>

/* Replaces the secret derived from the fabric's key; Unix sockets do not use it. */
void softib_secret(const char *purpose, uint8_t out[SOFTIB_SECRET_BYTES])
{
    (void)purpose;
    memset(out, 7, SOFTIB_SECRET_BYTES);
}

static void check_message(const struct message *m)
{
    FUZZ_CHECK(m->type >= MESSAGE_REQUEST && m->type <= MESSAGE_DISCONNECT);
    FUZZ_CHECK(m->private_len <= MESSAGE_PRIVATE_MAX && m->node < MESSAGE_MAX_NODES);
    FUZZ_CHECK(m->type > MESSAGE_REPLY ||
               (m->qp_num < 1u << 24 && m->mtu >= IBV_MTU_256 && m->mtu <= IBV_MTU_4096));
}

static void parse_message(const uint8_t *data)
{
    struct message m;
    uint8_t again[MESSAGE_BYTES];
    if (!message_decode(data, &m))
        return;
    check_message(&m);
    message_encode(&m, again);
    FUZZ_CHECK(memcmp(data, again, MESSAGE_BYTES) == 0);
}

static void receive_in_pieces(const uint8_t *data, size_t size, bool tcp)
{
    int fd[2];
    struct cm_link l;
    struct message m;
    FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    link_init(&l, fd[0], tcp, false, false);
    FUZZ_CHECK(write(fd[1], data, size) == (ssize_t)size);
    close(fd[1]);
    for (enum link_result r = LINK_NOTHING; r != LINK_DOWN;) {
        r = link_receive(&l, &m);
        FUZZ_CHECK(l.got <= sizeof(l.in));
        if (r == LINK_MESSAGE)
            check_message(&m);
    }
    close(fd[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= MESSAGE_BYTES) {
        uint8_t *copy = malloc(MESSAGE_BYTES);
        memcpy(copy, data, MESSAGE_BYTES);
        parse_message(copy);
        free(copy);
    }
    receive_in_pieces(data, size, false);
    receive_in_pieces(data, size, true);
    return 0;
}
