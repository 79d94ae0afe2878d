/* t_rdmacm_failure.c: peers of librdmacm on softib that never answer, that send invalid bytes, and that
 * die while they connect.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rdmacm_ends.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SILENT = 300 }; /* more than CM_UNPROVED_MAX */

/* Connects to a listener that never answers and whose backlog is full. */
static void test_unanswered_requests(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 1), *id[4];
    struct rdma_cm_event *e;
    int full = 0;
    setenv("SOFTIB_CM_SECONDS", "1", 1);
    for (int i = 0; i < 4; i++)
        id[i] = create_routed_id(RDMA_PS_TCP, get_source_port(l));
    for (int i = 0; i < 4; i++)
        EXPECT(!rdma_connect(id[i], NULL));
    unsetenv("SOFTIB_CM_SECONDS");
    for (int i = 0; i < 4; i++) {
        e = next_event(active);
        full += e->event == RDMA_CM_EVENT_REJECTED && e->status == 28;
        EXPECT(e->event == RDMA_CM_EVENT_REJECTED ||
               (e->event == RDMA_CM_EVENT_UNREACHABLE && e->status == -ETIMEDOUT));
        rdma_ack_cm_event(e);
    }
    EXPECT(full == 2 || getenv("RDMACM_TCP"));
    for (int i = 0; i < 4; i++)
        destroy_id(id[i]);
    destroy_id(l);
}

static struct sockaddr_un find_listener_socket(struct rdma_cm_id *l, socklen_t *length)
{
    char line[512], wanted[16];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(wanted, sizeof(wanted), "/%u/*", get_source_port(l));
    FILE *f = fopen("/proc/net/unix", "r");
    while (f && fgets(line, sizeof(line), f)) {
        char *at = strstr(line, "@softib-cm/");
        if (at && strstr(at, wanted))
            snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%.*s", (int)strcspn(at + 1, "\n"),
                     at + 1);
    }
    if (f)
        fclose(f);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1));
    return name;
}

static void expect_connection_request(struct rdma_cm_id *l, struct rdma_cm_id *a)
{
    struct rdma_conn_param c = {.private_data = "good", .private_data_len = 5};
    EXPECT(!rdma_connect(a, &c));
    destroy_id(expect_request(l, "good", 56));
    EXPECT_AND_ACK(active, REJECTED);
    destroy_id(a);
    destroy_id(l);
}

/* Invalid bytes sent to the listener's socket do not prevent others from connecting. */
static void test_invalid_bytes(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 0),
                      *a = create_routed_id(RDMA_PS_TCP, get_source_port(l));
    char bytes[4096];
    socklen_t length;
    struct sockaddr_un name = find_listener_socket(l, &length);
    memset(bytes, 0x5a, sizeof(bytes));
    for (int i = 0; i < 300; i++) { /* more connections than the listener accepts at once */
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (!connect(fd, (struct sockaddr *)&name, length))
            EXPECT(i % 3 == 0 || send(fd, bytes, i % 3 == 1 ? 10 : sizeof(bytes), MSG_NOSIGNAL) > 0);
        close(fd);
    }
    expect_connection_request(l, a);
}

/* Connections that stay open and send nothing do not prevent others from connecting. */
static void test_silent_connections(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 0),
                      *a = create_routed_id(RDMA_PS_TCP, get_source_port(l));
    int fds[SILENT];
    socklen_t length;
    struct sockaddr_un name = find_listener_socket(l, &length);
    for (int i = 0; i < SILENT; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        EXPECT(!connect(fds[i], (struct sockaddr *)&name, length));
    }
    fetch_events(passive);
    expect_connection_request(l, a);
    for (int i = 0; i < SILENT; i++)
        close(fds[i]);
}

/* The child connects and exits: in stage 0 while its request is pending, in stage 1 after the connection
 * is established. */
static void connect_and_die(int port_pipe, int stage)
{
    uint16_t port;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(port_pipe, &port, sizeof(port)) != sizeof(port))
        exit(1);
    active = rdma_create_event_channel();
    struct rdma_cm_id *id = create_routed_id(RDMA_PS_TCP, port);
    add_qp(id, IBV_QPT_RC);
    rdma_connect(id, NULL);
    if (stage)
        EXPECT_AND_ACK(active, ESTABLISHED);
    _exit(0);
}

static void test_dying_peers(const int pipes[2], const pid_t pids[2])
{
    for (int stage = getenv("RDMACM_TCP") != NULL; stage < 2; stage++) {
        struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 0);
        uint16_t port = get_source_port(l);
        EXPECT(write(pipes[stage], &port, sizeof(port)) == sizeof(port));
        struct rdma_cm_event *e = EXPECT_EVENT(passive, CONNECT_REQUEST);
        struct rdma_cm_id *p = e->id;
        rdma_ack_cm_event(e);
        add_qp(p, IBV_QPT_RC);
        if (!stage) {
            EXPECT(waitpid(pids[0], NULL, 0) == pids[0]);
            EXPECT_AND_ACK(passive, REJECTED);
        } else {
            EXPECT(!rdma_accept(p, NULL));
            EXPECT_AND_ACK(passive, ESTABLISHED);
            EXPECT_AND_ACK(passive, DISCONNECTED);
            EXPECT(waitpid(pids[1], NULL, 0) == pids[1]);
        }
        destroy_id(p);
        destroy_id(l);
    }
}

int main(void)
{
    int pipes[2];
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        int p[2];
        if (pipe(p))
            return 1;
        pids[i] = fork();
        if (!pids[i])
            connect_and_die(p[0], i);
        close(p[0]);
        pipes[i] = p[1];
    }
    open_channels();
    test_unanswered_requests();
    if (!getenv("RDMACM_TCP")) {
        test_invalid_bytes();
        test_silent_connections();
    }
    test_dying_peers(pipes, pids);
    return close_channels();
}
