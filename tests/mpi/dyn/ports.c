/* ports.c: accept and connect between two halves of a job, published names, MPI_Comm_join over a socket,
 * and the errors of these calls.
 *
 * ranks: 4
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpitest.h"

/* Counts of send() calls of the library: [0] all pieces, [1] pieces on TCP sockets that the kernel may
 * delay until earlier data is acknowledged. */
static int pieces[2];

ssize_t send(int fd, const void *data, size_t len, int flags)
{
    int at_once = 0;
    socklen_t size = sizeof(at_once);
    if (getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, &size) == 0) {
        pieces[0]++;
        pieces[1] += !at_once;
    }
    return sendto(fd, data, len, flags, NULL, 0);
}

static void exchange_messages(MPI_Comm inter)
{
    int rank, remote, sum = 0;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&(int){1 + rank}, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT_EQ(sum, remote * (remote + 1) / 2);
    int got = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 3, &got, 1, MPI_INT, rank, 3, inter, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, rank);
}

static int by_tcp;

/* Changes the port name to one that a process of another machine sees: the network number differs, and the
 * connection uses TCP, unless this machine has only the loopback address. */
static void make_port_remote(char *port)
{
    char *network = port;
    for (int i = 0; i < 3; i++)
        network = strchr(network, ':') + 1;
    by_tcp = strrchr(port, ':')[1] != '\0';
    if (by_tcp)
        *network = *network == '0' ? '1' : '0';
}

/* The even ranks accept, the odd ranks connect, several times on one port. */
static void test_accept_and_connect(void)
{
    char port[MPI_MAX_PORT_NAME], service[64];
    MPI_Comm half, inter;
    int serves = mpitest_rank % 2 == 0, pid = (int)getpid();
    MPI_Comm_split(MPI_COMM_WORLD, !serves, mpitest_rank, &half);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(service, sizeof(service), "ports test %d", pid);
    if (mpitest_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        EXPECT_EQ(MPI_Publish_name(service, MPI_INFO_NULL, port), MPI_SUCCESS);
        EXPECT_CLASS(MPI_Publish_name(service, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 3)
        EXPECT_EQ(MPI_Lookup_name(service, MPI_INFO_NULL, port), MPI_SUCCESS);
    for (int round = 0; round < 4; round++) {
        if (round == 3 && mpitest_rank == 3)
            make_port_remote(port);
        if (serves)
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
        else
            MPI_Comm_connect(port, MPI_INFO_NULL, 1, half, &inter);
        exchange_messages(inter);
        MPI_Comm_disconnect(&inter);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0) {
        EXPECT_EQ(MPI_Unpublish_name(service, MPI_INFO_NULL, port), MPI_SUCCESS);
        EXPECT_CLASS(MPI_Unpublish_name(service, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        EXPECT_CLASS(MPI_Lookup_name(service, MPI_INFO_NULL, port), MPI_ERR_NAME);
        EXPECT_EQ(MPI_Close_port(port), MPI_SUCCESS);
        EXPECT_CLASS(MPI_Close_port(port), MPI_ERR_PORT);
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    EXPECT_CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter), MPI_ERR_PORT);
    EXPECT_CLASS(MPI_Comm_connect("no port", MPI_INFO_NULL, 0, half, &inter), MPI_ERR_PORT);
    MPI_Comm_free(&half);
}

/* Ranks 1 and 2 join over a socket. */
static void test_join(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0), s = fd;
    MPI_Comm inter;
    if (mpitest_rank == 1) {
        EXPECT(bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 1) == 0 &&
               getsockname(fd, (struct sockaddr *)&address, &len) == 0);
        MPI_Send(&address, sizeof(address), MPI_BYTE, 2, 0, MPI_COMM_WORLD);
        s = accept(fd, NULL, NULL);
    } else {
        MPI_Recv(&address, sizeof(address), MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(connect(fd, (struct sockaddr *)&address, len) == 0);
    }
    EXPECT_EQ(MPI_Comm_join(s, &inter), MPI_SUCCESS);
    exchange_messages(inter);
    MPI_Comm_disconnect(&inter);
    close(s);
    if (s != fd)
        close(fd);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm up;
    MPI_Comm_get_parent(&up);
    EXPECT(up == MPI_COMM_NULL);
    test_accept_and_connect();
    MPI_Allreduce(MPI_IN_PLACE, pieces, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&by_tcp, 1, MPI_INT, 3, MPI_COMM_WORLD);
    EXPECT_EQ(pieces[0] > 0, by_tcp);
    EXPECT_EQ(pieces[1], 0);
    if (mpitest_rank == 1 || mpitest_rank == 2)
        test_join();
    MPI_Barrier(MPI_COMM_WORLD);
    return mpitest_end();
}
