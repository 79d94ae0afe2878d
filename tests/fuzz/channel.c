/* channel.c: fuzzes the socket between two groups that connect: bytes of an unauthenticated process, at
 * the accepting and at the connecting side, and messages after the handshake, with valid and invalid
 * codes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dyn/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "obj/proc.h"

static struct net net;
static struct proc proc = {.net = &net};
static const uint8_t key[HANDSHAKE_KEY] = "fuzz";

/* Returns a socket whose other end has sent these bytes and is closed. */
static int make_closed_socket(const void *bytes, size_t len)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        abort();
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (size_t done = 0; done < len;) {
        ssize_t n = send(ends[1], (const char *)bytes + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    shutdown(ends[1], SHUT_WR);
    /* The end that sent the bytes stays open until the next input: some kernels discard unread bytes when a
     * socket is closed. The code under test can still write its answer to the socket's buffer. */
    static int before = -1;
    if (before >= 0)
        close(before);
    before = ends[1];
    return ends[0];
}

static void fuzz_greeting(struct fuzz_in *in, bool accepts)
{
    struct channel c;
    int fd = make_closed_socket(in->at, in->left);
    /* The input cannot contain a valid proof. */
    FUZZ_CHECK(channel_open(&c, &proc, fd, true, accepts, key) != 0);
    FUZZ_CHECK(c.fd == -1);
}

/* Receives the input as a message: only a sealed message may be accepted. */
static void fuzz_message(struct fuzz_in *in)
{
    struct channel c = {.proc = &proc, .fd = make_closed_socket(in->at, in->left), .own_fd = true};
    void *data;
    size_t len;
    FUZZ_CHECK(channel_receive(&c, &data, &len) != 0);
    channel_close(&c);
}

/* A sealed message is received unchanged once; the second time its number is invalid. */
static void check_sealed_message(struct fuzz_in *in)
{
    int ends[2];
    void *data = NULL;
    size_t len = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        abort();
    struct channel from = {.proc = &proc, .fd = ends[0], .own_fd = true, .accepts = true};
    struct channel to = {.proc = &proc, .fd = ends[1], .own_fd = true};
    FUZZ_CHECK(channel_send(&from, in->at, in->left) == 0);
    FUZZ_CHECK(channel_receive(&to, &data, &len) == 0 && len == in->left && memcmp(data, in->at, len) == 0);
    free(data);
    from.sent = 0;
    FUZZ_CHECK(channel_send(&from, in->at, in->left) == 0 && channel_receive(&to, &data, &len) != 0);
    channel_close(&from);
    channel_close(&to);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_in in = {bytes, size};
    static const uint8_t nothing[1];
    uint8_t what = fuzz_u8(&in);
    list_init(&net.stalled);
    list_init(&net.hooks);
    list_init(&net.groups);
    list_init(&net.group_notes);
    if (!in.at || !in.left)
        in.at = nothing;
    switch (what % 4) {
    case 0:
    case 1:
        fuzz_greeting(&in, what & 1);
        break;
    case 2:
        fuzz_message(&in);
        break;
    default:
        check_sealed_message(&in);
    }
    return 0;
}
