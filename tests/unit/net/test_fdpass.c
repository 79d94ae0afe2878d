/* test_fdpass.c: a node whose launcher provides no shared memory: the first rank passes a memfd to the
 * others through a socket. All ranks map the same memory; ranks with different ring sizes are refused with
 * an error message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/tunable.h"
#include "boot/backend.h"
#include "net/shm/segment.h"

static int fence_sockets[NODE_MAX][2]; /* [rank][0] is the parent's end */

/* Every rank sends to rank 0, and rank 0 sends to every rank. */
static int test_fence(struct boot *b)
{
    char byte = 1;
    if (b->rank != 0)
        return write(fence_sockets[b->rank][1], &byte, 1) == 1 &&
                       read(fence_sockets[b->rank][1], &byte, 1) == 1
                   ? 0
                   : MPI_ERR_OTHER;
    for (uint32_t i = 1; i < b->size; i++)
        if (read(fence_sockets[i][0], &byte, 1) != 1)
            return MPI_ERR_OTHER;
    for (uint32_t i = 1; i < b->size; i++)
        if (write(fence_sockets[i][0], &byte, 1) != 1)
            return MPI_ERR_OTHER;
    return 0;
}

/* The value of the only key, which any rank may put. */
static struct stored {
    size_t len;
    char value[128];
} * stored;

static int fake_boot_put(struct boot *b, const char *key, const void *val, size_t len)
{
    (void)b, (void)key;
    if (len > sizeof(stored->value))
        return MPI_ERR_OTHER;
    memcpy(stored->value, val, len);
    stored->len = len;
    return 0;
}

static int fake_boot_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    (void)b, (void)rank, (void)key;
    *val = malloc(stored->len + 1);
    memcpy(*val, stored->value, stored->len);
    *len = stored->len;
    return 0;
}

static const struct boot_backend backend = {
    .name = "test", .fence = test_fence, .put = fake_boot_put, .get = fake_boot_get};

/* Runs `body` on `size` ranks before any rank has mapped the memory; `odd` is a rank with another ring
 * size, or -1. */
static void run_unmapped_node(uint32_t size, int odd, void (*body)(struct node *n, int rc))
{
    static struct node n;
    static char job[32];
    snprintf(job, sizeof(job), "fdpass-%d", (int)getpid());
    for (uint32_t i = 1; i < size; i++)
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fence_sockets[i]), 0);
    const uint32_t rank = node_fork(&n, size);
    if ((int)rank == odd)
        tunable_set(tunables_find("SHM_RING"), "1m", SOURCE_PROGRAM);
    node_init(&n, rank, size, -1);
    n.boot.job = job;
    n.boot.backend = &backend;
    int rc = net_open(&n.boot, &n.net);
    body(&n, rc);
    if (rc == 0)
        net_close(n.net);
    node_join(&n, rank, size);
    for (uint32_t i = 1; i < size; i++) {
        close(fence_sockets[i][0]);
        close(fence_sockets[i][1]);
    }
}

static bool all_ranks_have_added(void *arg)
{
    return atomic_load((_Atomic uint32_t *)arg) == 4;
}

static void add_in_shared_memory(struct node *n, int rc)
{
    EXPECT_EQ(rc, 0);
    if (rc != 0)
        return;
    _Atomic uint32_t *count = (_Atomic uint32_t *)n->net->area;
    struct net_waiter w = {.ready = all_ranks_have_added, .arg = count};
    atomic_fetch_add(count, 1);
    for (uint32_t i = 0; i < n->boot.size; i++)
        net_wake_local_rank(n->net, i);
    while (!all_ranks_have_added(count))
        net_wait_step(n->net, &w);
}

static void test_ranks_share_memory(void)
{
    run_unmapped_node(4, -1, add_in_shared_memory);
}

/* The second rank has another ring size and is refused; the first rank waits for it until the timeout. */
static void expect_refusal(struct node *n, int rc)
{
    (void)n;
    EXPECT(rc != 0);
    const char *sentence = err_detail(rc);
    EXPECT(strstr(sentence, "disagree") || strstr(sentence, "did not reach"));
}

static void test_other_ring_size_is_refused(void)
{
    /* The timeout is 1 s, since the refused rank never answers. */
    tunable_set(tunables_find("INIT_TIMEOUT"), "1", SOURCE_PROGRAM);
    run_unmapped_node(2, 1, expect_refusal);
}

/* The kernel chooses the name of the socket (a 0 and five digits), so another user cannot bind it
 * beforehand. */
static void test_socket_name_is_unpredictable(void)
{
    struct sockaddr_un address = {0};
    EXPECT_EQ(stored->len, offsetof(struct sockaddr_un, sun_path) + 6);
    memcpy(&address, stored->value, MIN(stored->len, sizeof(address)));
    EXPECT_EQ(address.sun_path[0], 0);
    EXPECT_EQ(strspn(address.sun_path + 1, "0123456789abcdef"), 5);
}

/* ---- wrong messages to a rank that fetches the descriptor ---- */

static int fence_single_rank(struct boot *b)
{
    (void)b;
    return 0;
}

static const struct boot_backend backend_of_one = {
    .name = "test", .fence = fence_single_rank, .put = fake_boot_put, .get = fake_boot_get};

/* Sends one message of a byte to the next connection; with the descriptor if `fd` >= 0. */
static void send_wrong_message(int listener, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    char byte = 1;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control.room);
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
    }
    const int s = accept(listener, NULL, NULL);
    _exit(s >= 0 && sendmsg(s, &m, 0) == 1 ? 0 : 1);
}

static int count_open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Opens a segment as rank 1 of a node whose rank 0 sends a wrong message. */
static void open_with_wrong_message(int fd, const char *reason)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(address);
    struct node n;
    struct segment out;
    int status = -1;
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener, (struct sockaddr *)&address, sizeof(address.sun_family)), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    const pid_t sender = fork();
    if (sender == 0)
        send_wrong_message(listener, fd);
    node_init(&n, 1, 2, -1);
    n.boot.backend = &backend_of_one;
    fake_boot_put(&n.boot, "", &address, len);
    const int before = count_open_descriptors();
    errno = ENOTTY; /* errno of an earlier error must not be reported as the reason */
    const int rc = segment_open(&n.boot, 64, &out);
    EXPECT(rc != 0);
    if (!strstr(err_detail(rc), reason))
        EXPECT_STR(err_detail(rc), reason);
    EXPECT_EQ(count_open_descriptors(), before);
    waitpid(sender, &status, 0);
    EXPECT_EQ(status, 0);
    close(listener);
}

static void test_message_without_descriptor(void)
{
    open_with_wrong_message(-1, "Bad message");
}

/* The descriptor is no memory file: it is refused, and closed. */
static void test_wrong_descriptor_is_closed(void)
{
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    open_with_wrong_message(ends[0], "cannot size the node's shared memory");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    stored = mmap(NULL, sizeof(*stored), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_RUN(test_ranks_share_memory);
    TEST_RUN(test_socket_name_is_unpredictable);
    TEST_RUN(test_other_ring_size_is_refused);
    TEST_RUN(test_message_without_descriptor);
    TEST_RUN(test_wrong_descriptor_is_closed);
    return test_result();
}
