/* strangers.c: accept and connect with silent foreign connections at both ends, and without free file
 * descriptors.
 *
 * ranks: 2
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mpitest.h"

#define STRANGERS 150

/* Fields of a port name: fishplate:2:<key>:<network>:<local>:<port>:<addresses>. */
enum { FIELD_NETWORK = 3, FIELD_LOCAL, FIELD_PORT, FIELD_ADDRESSES };

static char *find_field(char *name, int n)
{
    while (n-- > 0)
        name = strchr(name, ':') + 1;
    return name;
}

/* Changes the network number in the name to that of another machine, so that only TCP can be used. */
static void make_name_remote(char *name)
{
    char *network = find_field(name, FIELD_NETWORK);
    *network = *network == '0' ? '1' : '0';
}

static int connect_local(char *name)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int n = snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "fishplate-port-%.16s",
                           find_field(name, FIELD_LOCAL));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, (struct sockaddr *)&to,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0);
    return fd;
}

static struct sockaddr_in first_address(char *name)
{
    char text[INET_ADDRSTRLEN] = "";
    const char *at = find_field(name, FIELD_ADDRESSES);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(find_field(name, FIELD_PORT)))};
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, ","), at);
    EXPECT_EQ(inet_pton(AF_INET, text, &to.sin_addr), 1);
    return to;
}

static int connect_network(char *name)
{
    const struct sockaddr_in to = first_address(name);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0);
    return fd;
}

static int has_addresses(char *name)
{
    return *find_field(name, FIELD_ADDRESSES) != '\0';
}

static void accept_and_connect(char *name, MPI_Info info)
{
    MPI_Comm other;
    int value = mpitest_rank, got = -1;
    if (mpitest_rank == 0)
        EXPECT_EQ(MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other), MPI_SUCCESS);
    else
        EXPECT_EQ(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &other), MPI_SUCCESS);
    if (other == MPI_COMM_NULL)
        return;
    MPI_Sendrecv(&value, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, 1 - mpitest_rank);
    MPI_Comm_disconnect(&other);
}

/* Opens more silent connections than are served at a time; rank 1 connects nevertheless, over both kinds
 * of sockets. */
static void test_many_silent_connections(char *name)
{
    int fd[STRANGERS];
    if (mpitest_rank == 1)
        for (int i = 0; i < STRANGERS; i++)
            fd[i] = i % 2 && has_addresses(name) ? connect_network(name) : connect_local(name);
    accept_and_connect(name, MPI_INFO_NULL);
    if (mpitest_rank == 1 && has_addresses(name))
        make_name_remote(name);
    accept_and_connect(name, MPI_INFO_NULL);
    if (mpitest_rank == 1)
        for (int i = 0; i < STRANGERS; i++)
            close(fd[i]);
}

/* Opens a socket that listens on this address and never accepts. */
static int listen_silently(const char *address, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t len = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &at.sin_addr);
    if (bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(at.sin_port);
    return fd;
}

/* Without an answer MPI_Comm_connect fails after the caller's time limit. */
static void test_silent_listener(const char *true_name)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Info info;
    MPI_Comm other;
    uint16_t port = 0;
    const int fd = listen_silently("127.0.0.1", &port);
    EXPECT(fd >= 0);
    strcpy(name, true_name);
    sprintf(find_field(name, FIELD_PORT), "%u:127.0.0.1", port);
    make_name_remote(name);
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "1");
    EXPECT_CLASS(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &other), MPI_ERR_PORT);
    MPI_Info_set(info, "timeout", "soon");
    EXPECT_CLASS(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &other), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    close(fd);
}

/* Connects to a name whose first address belongs to a process that never answers; the port is at the
 * second address. */
static void test_silent_first_address(char *name)
{
    uint16_t port = (uint16_t)atoi(find_field(name, FIELD_PORT));
    int fd = -1;
    if (mpitest_rank == 1 && has_addresses(name) && (fd = listen_silently("127.0.0.9", &port)) >= 0) {
        char addresses[MPI_MAX_PORT_NAME];
        strcpy(addresses, find_field(name, FIELD_ADDRESSES));
        strcpy(find_field(name, FIELD_ADDRESSES), "127.0.0.9,");
        strcat(name, addresses);
        make_name_remote(name);
    }
    accept_and_connect(name, MPI_INFO_NULL);
    if (fd >= 0)
        close(fd);
}

/* MPI_Comm_accept without a free descriptor for its client returns an error instead of waiting forever. */
static void test_without_descriptors(char *name)
{
    enum { FEW = 256 };
    int used[FEW], n = 0;
    struct rlimit before;
    MPI_Comm other;
    if (mpitest_rank == 0) {
        getrlimit(RLIMIT_NOFILE, &before);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){FEW, before.rlim_max});
        for (int fd; n < FEW && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0; n++)
            used[n] = fd;
        EXPECT(n > 0);
        EXPECT_CLASS(MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other), MPI_ERR_PORT);
        while (n > 0)
            close(used[--n]);
        setrlimit(RLIMIT_NOFILE, &before);
    }
    accept_and_connect(name, MPI_INFO_NULL); /* rank 1 was refused and tries again */
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "", own[MPI_MAX_PORT_NAME];
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (mpitest_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    test_many_silent_connections(strcpy(own, name));
    if (mpitest_rank == 1)
        test_silent_listener(name);
    test_silent_first_address(strcpy(own, name));
    test_without_descriptors(strcpy(own, name));
    if (mpitest_rank == 0)
        MPI_Close_port(name);
    return mpitest_end();
}
