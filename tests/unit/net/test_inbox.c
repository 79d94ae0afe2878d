/* test_inbox.c: connections to the inbox of a peer; the process is its own peer. A descriptor (struct
 * net_card) whose inbox or doorbell is an ordinary file is refused, and the file is not written; the
 * correct descriptor connects. If a sender ends in the middle of a frame, the frames behind that frame
 * arrive once the sender is removed. A sender that dies between its claim of a place and its first frame leaves
 * no place in use.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "boot/boot.h"
#include "net/guest.h"
#include "net/net.h"
#include "net/peer.h"
#include "net/shm/shm.h"
#include "test.h"

enum { BYTES = 4 << 20 };

static struct transport *find_inbox_transport(struct net *net)
{
    for (int i = 0; i < net->ntransports; i++)
        if (strcmp(net->transports[i]->ops->name, "inbox") == 0)
            return net->transports[i];
    EXPECT(!"an inbox");
    return NULL;
}

/* Creates a file of the size of an inbox, filled with one byte value. */
static int make_foreign_file(void)
{
    char path[] = "/tmp/fishplate-inbox-XXXXXX";
    int fd = mkstemp(path);
    static char bytes[BYTES];
    memset(bytes, 0x5a, sizeof(bytes));
    unlink(path);
    EXPECT_EQ(pwrite(fd, bytes, sizeof(bytes), 0), BYTES);
    return fd;
}

static void expect_file_unchanged(int fd)
{
    static char bytes[BYTES];
    size_t wrong = 0;
    EXPECT_EQ(pread(fd, bytes, sizeof(bytes), 0), BYTES);
    for (size_t i = 0; i < sizeof(bytes); i++)
        wrong += bytes[i] != 0x5a;
    EXPECT_EQ(wrong, 0);
}

static int connect_and_disconnect(struct transport *t, const struct net_card *card)
{
    struct peer peer = {.transport = t, .net = t->net, .card = card};
    int rc = t->ops->connect(t, &peer);
    if (rc == 0)
        t->ops->disconnect(t, &peer);
    return rc;
}

static struct net *open_alone(struct net_card *card)
{
    static uint32_t zero;
    static struct boot boot = {.size = 1,
                               .nnodes = 1,
                               .node_of = &zero,
                               .nlocal = 1,
                               .local_ranks = &zero,
                               .node_fd = -1,
                               .vnode = -1,
                               .host = "here",
                               .job = "unit-test"};
    struct net *net;
    EXPECT_EQ(net_open(&boot, &net), 0);
    EXPECT_EQ(net_fill_card(net, card), 0);
    return net;
}

static void test_foreign_files_are_refused(void)
{
    struct net_card card;
    struct net *net = open_alone(&card);
    struct transport *t = find_inbox_transport(net);
    if (!t)
        return;
    EXPECT(t->ops->reaches_card(t, &card));
    EXPECT_EQ(connect_and_disconnect(t, &card), 0);

    int fd = make_foreign_file();
    struct net_card bad = card;
    bad.inbox_fd = fd;
    bad.probe_value = 0x5a5a5a5a5a5a5a5a;
    EXPECT(!t->ops->reaches_card(t, &bad));
    EXPECT(connect_and_disconnect(t, &bad) != 0);
    bad = card;
    bad.bell_fd = fd;
    EXPECT(connect_and_disconnect(t, &bad) != 0);
    int unsealed = memfd_create("fishplate-inbox", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(unsealed, BYTES), 0);
    bad = card;
    bad.inbox_fd = unsealed;
    EXPECT(!t->ops->reaches_card(t, &bad));
    close(unsealed);
    expect_file_unchanged(fd);
    close(fd);
    net_close(net);
}

/* A sender leaves a slot reserved and is disconnected, although no death was reported. */
static void test_unfinished_frame_is_skipped(void)
{
    struct net_card card;
    struct net *net = open_alone(&card);
    struct transport *t = find_inbox_transport(net);
    if (!t)
        return;
    struct peer first = {.transport = t, .net = net, .card = &card}, second = first;
    void *room;
    int events = 0;
    EXPECT_EQ(t->ops->connect(t, &first), 0);
    EXPECT_EQ(t->ops->reserve(&first, 8, &room), 0);
    t->ops->disconnect(t, &first);
    inbox_remove_sender(t, &card);
    EXPECT_EQ(t->ops->connect(t, &second), 0);
    EXPECT_EQ(t->ops->send(&second, 0, 0, 0, "12345678", 8), 0);
    for (int i = 0; i < 10; i++)
        events += t->ops->poll(t);
    EXPECT_EQ(events, 2); /* the slot that is skipped, and the frame */
    t->ops->disconnect(t, &second);
    net_close(net);
}

/* Guests claim a place and die before they send a frame; this process has never sent them one. Their places are free
 * once the guests are removed: more guests than places can connect. */
static void test_places_of_dead_senders_become_free(void)
{
    struct net_card card;
    struct net *net = open_alone(&card);
    struct transport *t = find_inbox_transport(net);
    if (!t)
        return;
    struct net other = *net;
    struct transport theirs = {.ops = t->ops, .net = &other};
    struct net_card guest = card;
    guest.world++;
    other.world++;
    uint32_t connected = 0, number;
    for (uint32_t i = 0; i < RING_SENDERS + 10; i++) {
        struct peer peer = {.transport = &theirs, .net = &other, .card = &card};
        guest.rank = other.rank = i;
        EXPECT_EQ(net_guest_add(net, &guest, &number), 0);
        if (t->ops->connect(&theirs, &peer) != 0)
            break;
        connected++;
        t->ops->disconnect(&theirs, &peer); /* the kernel unmaps the inbox when a process dies */
        net_guests_disconnect_unused(net);
    }
    EXPECT_EQ(connected, RING_SENDERS + 10);
    net_close(net);
}

int main(void)
{
    TEST_RUN(test_foreign_files_are_refused);
    TEST_RUN(test_unfinished_frame_is_skipped);
    TEST_RUN(test_places_of_dead_senders_become_free);
    return test_result();
}
