/* test_acceptor.c: the acceptor of connections: at most `max` callers at a time, the oldest caller is
 * replaced by a new one, no caller stays longer than the limit, and a process without free file
 * descriptors refuses callers instead of letting them wait.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

struct test_caller {
    struct acceptor_caller in;
    int fd;
};

static struct acceptor acceptor;
static int listener, rejected, refuse;
static struct sockaddr_un name = {.sun_family = AF_UNIX};
static socklen_t name_len = sizeof(sa_family_t); /* the kernel chooses an abstract name */

static struct acceptor_caller *admit_caller(void *ctx, int fd)
{
    struct test_caller *c = refuse ? NULL : calloc(1, sizeof(*c));
    (void)ctx;
    if (!c)
        return NULL;
    EXPECT((fcntl(fd, F_GETFD) & FD_CLOEXEC) && (fcntl(fd, F_GETFL) & O_NONBLOCK));
    c->fd = fd;
    return &c->in;
}

static void reject_caller(void *ctx, struct acceptor_caller *in)
{
    struct test_caller *c = (struct test_caller *)in;
    (void)ctx;
    rejected++;
    close(c->fd);
    free(c);
}

static const struct acceptor_ops ops = {admit_caller, reject_caller};

static void open_acceptor(uint32_t max, uint32_t ms)
{
    name_len = sizeof(sa_family_t);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT(bind(listener, (struct sockaddr *)&name, name_len) == 0 && listen(listener, 64) == 0);
    name_len = sizeof(name);
    EXPECT(getsockname(listener, (struct sockaddr *)&name, &name_len) == 0);
    acceptor_open(&acceptor, max, ms, &ops, NULL);
    rejected = refuse = 0;
}

static void close_acceptor(void)
{
    acceptor_close(&acceptor);
    EXPECT_EQ(acceptor.n, 0);
    close(listener);
}

static int connect_caller(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, (struct sockaddr *)&name, name_len) == 0);
    return fd;
}

static int is_disconnected(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void test_callers_and_their_time_are_limited(void)
{
    int fd[5];
    open_acceptor(3, 100);
    for (int i = 0; i < 3; i++) {
        fd[i] = connect_caller();
        EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 10 * (uint64_t)i), 0);
    }
    EXPECT_EQ(acceptor.n, 3);
    fd[3] = connect_caller();
    EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 30), 0);
    EXPECT_EQ(acceptor.n, 3);
    EXPECT(is_disconnected(fd[0]) && !is_disconnected(fd[1]) && !is_disconnected(fd[3]));
    EXPECT_EQ(acceptor_expire(&acceptor, 105), 5);
    EXPECT_EQ(acceptor_expire(&acceptor, 110), 10);
    EXPECT_EQ(rejected, 2);
    EXPECT(is_disconnected(fd[1]) && !is_disconnected(fd[2]));
    struct test_caller *proved = (struct test_caller *)acceptor.first->next;
    acceptor_remove(&acceptor, &proved->in);
    acceptor_remove(&acceptor, &proved->in);
    EXPECT_EQ(acceptor.n, 1);
    fd[4] = connect_caller();
    EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 110), 0);
    EXPECT_EQ(acceptor_expire(&acceptor, 1000), UINT64_MAX);
    EXPECT(!is_disconnected(fd[3]) && is_disconnected(fd[4]));
    reject_caller(NULL, &proved->in);
    for (int i = 0; i < 5; i++)
        close(fd[i]);
    close_acceptor();
}

static void test_memory_runs_out(void)
{
    open_acceptor(3, 100);
    refuse = 1;
    const int fd = connect_caller();
    EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 0), ENOMEM);
    EXPECT(is_disconnected(fd) && acceptor.n == 0);
    close(fd);
    close_acceptor();
}

enum { DESCRIPTORS = 64 };

static int used[DESCRIPTORS], nused;

static void use_all_descriptors(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        used[nused++] = fd;
    EXPECT_EQ(errno, EMFILE);
}

static void test_descriptors_run_out(void)
{
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    open_acceptor(3, 100);
    const int first = connect_caller(), second = connect_caller();
    EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 0), 0);
    EXPECT_EQ(acceptor.n, 2);
    const int third = connect_caller();
    struct rlimit few = {DESCRIPTORS, before.rlim_max};
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    use_all_descriptors();
    /* The oldest caller is disconnected, and its descriptor serves the next caller only. */
    EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 0), 0);
    EXPECT_EQ(acceptor.n, 2);
    EXPECT(is_disconnected(first) && !is_disconnected(second) && !is_disconnected(third));
    /* Without a caller that can be disconnected the next caller is refused. */
    EXPECT_EQ(acceptor_expire(&acceptor, 1000), UINT64_MAX);
    use_all_descriptors();
    close(used[--nused]);
    const int refused = connect_caller();
    EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 1000), EMFILE);
    EXPECT(is_disconnected(refused));
    /* Later callers are admitted as soon as descriptors are free. */
    close(refused);
    close(used[--nused]);
    const int late = connect_caller();
    EXPECT_EQ(acceptor_accept_pending(&acceptor, listener, 1000), 0);
    EXPECT(!is_disconnected(late) && acceptor.n == 1);
    while (nused > 0)
        close(used[--nused]);
    close(late);
    close(first);
    close(second);
    close(third);
    close_acceptor();
    setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
    TEST_RUN(test_callers_and_their_time_are_limited);
    TEST_RUN(test_memory_runs_out);
    TEST_RUN(test_descriptors_run_out);
    return test_result();
}
