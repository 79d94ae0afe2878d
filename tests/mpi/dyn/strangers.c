/* strangers.c: accept and connect among connections that say nothing, at both ends, and without file descriptors.
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

static int class_of(int rc)
{
    int class;
    MPI_Error_class(rc, &class);
    return class;
}

/* fishplate:2:<key>:<network>:<local>:<port>:<addresses> */
enum { FIELD_NETWORK = 3, FIELD_LOCAL, FIELD_PORT, FIELD_ADDRESSES };

static char *strangers_field(char *name, int n)
{
    while (n-- > 0)
        name = strchr(name, ':') + 1;
    return name;
}

/* Changes the name so that only TCP is left: the network number is that of another machine. */
static void be_elsewhere(char *name)
{
    char *network = strangers_field(name, FIELD_NETWORK);
    *network = *network == '0' ? '1' : '0';
}

static int connect_local(char *name)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int n = snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "fishplate-port-%.16s",
                           strangers_field(name, FIELD_LOCAL));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, (struct sockaddr *)&to,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0);
    return fd;
}

static struct sockaddr_in first_address(char *name)
{
    char text[INET_ADDRSTRLEN] = "";
    const char *at = strangers_field(name, FIELD_ADDRESSES);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strangers_field(name, FIELD_PORT)))};
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
    return *strangers_field(name, FIELD_ADDRESSES) != '\0';
}

static void strangers_match(char *name, MPI_Info info)
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

/* Opens more silent connections than are served at a time; rank 1 connects nevertheless, over either kind of socket. */
static void strangers_many_ranks(char *name)
{
    int fd[STRANGERS];
    if (mpitest_rank == 1)
        for (int i = 0; i < STRANGERS; i++)
            fd[i] = i % 2 && has_addresses(name) ? connect_network(name) : connect_local(name);
    strangers_match(name, MPI_INFO_NULL);
    if (mpitest_rank == 1 && has_addresses(name))
        be_elsewhere(name);
    strangers_match(name, MPI_INFO_NULL);
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

/* Without an answer the call ends with an error after the time limit of the caller. */
static void silent_listener(const char *true_name)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Info info;
    MPI_Comm other;
    uint16_t port = 0;
    const int fd = listen_silently("127.0.0.1", &port);
    EXPECT(fd >= 0);
    strcpy(name, true_name);
    sprintf(strangers_field(name, FIELD_PORT), "%u:127.0.0.1", port);
    be_elsewhere(name);
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "1");
    EXPECT_EQ(class_of(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &other)), MPI_ERR_PORT);
    MPI_Info_set(info, "timeout", "soon");
    EXPECT_EQ(class_of(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &other)), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    close(fd);
}

/* Connects to a name whose first address belongs to a process that never answers; the port is at the second. */
static void silent_first_address(char *name)
{
    uint16_t port = (uint16_t)atoi(strangers_field(name, FIELD_PORT));
    int fd = -1;
    if (mpitest_rank == 1 && has_addresses(name) && (fd = listen_silently("127.0.0.9", &port)) >= 0) {
        char addresses[MPI_MAX_PORT_NAME];
        strcpy(addresses, strangers_field(name, FIELD_ADDRESSES));
        strcpy(strangers_field(name, FIELD_ADDRESSES), "127.0.0.9,");
        strcat(name, addresses);
        be_elsewhere(name);
    }
    strangers_match(name, MPI_INFO_NULL);
    if (fd >= 0)
        close(fd);
}

/* MPI_Comm_accept without a free descriptor for its client returns an error instead of waiting for ever. */
static void no_descriptors(char *name)
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
        EXPECT_EQ(class_of(MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other)), MPI_ERR_PORT);
        while (n > 0)
            close(used[--n]);
        setrlimit(RLIMIT_NOFILE, &before);
    }
    strangers_match(name, MPI_INFO_NULL); /* rank 1 has been waiting, and tries again */
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "", own[MPI_MAX_PORT_NAME];
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (mpitest_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    strangers_many_ranks(strcpy(own, name));
    if (mpitest_rank == 1)
        silent_listener(name);
    silent_first_address(strcpy(own, name));
    no_descriptors(strcpy(own, name));
    if (mpitest_rank == 0)
        MPI_Close_port(name);
    return mpitest_end();
}
