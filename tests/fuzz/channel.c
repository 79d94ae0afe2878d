/* channel.c: the socket between two groups that connect: bytes of a stranger that has proved nothing, at the accepting and at the
 * connecting side, and messages after the handshake, with right and with wrong codes.
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

/* A socket whose other end has sent these bytes and closed. */
static int channel_socket_with(const void *bytes, size_t len)
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
    /* What is answered fits into the socket's buffer; closing it now would lose what was said on some kernels. */
    static int before = -1;
    if (before >= 0)
        close(before);
    before = ends[1];
    return ends[0];
}

static void test_greeting(struct fuzz_in *in, bool accepts)
{
    struct channel c;
    int fd = channel_socket_with(in->at, in->left);
    FUZZ_CHECK(channel_open(&c, &proc, fd, true, accepts, key) != 0); /* nobody guesses the proof */
    FUZZ_CHECK(c.fd == -1);
}

/* Receives any bytes as a message: only sealed ones may be accepted. */
static void test_message(struct fuzz_in *in)
{
    struct channel c = {.proc = &proc, .fd = channel_socket_with(in->at, in->left), .own_fd = true};
    void *data;
    size_t len;
    FUZZ_CHECK(channel_receive(&c, &data, &len) != 0);
    channel_close(&c);
}

/* Receives a sealed message unchanged, once; the second time its number is wrong. */
static void test_sealed(struct fuzz_in *in)
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
        test_greeting(&in, what & 1);
        break;
    case 2:
        test_message(&in);
        break;
    default:
        test_sealed(&in);
    }
    return 0;
}
