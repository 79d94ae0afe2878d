/* comm_join.c: MPI_Comm_join: creates an intercommunicator of two processes that are connected by a socket.
 * The process with the larger random number is the accepting side.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/err.h"
#include "dyn/meet.h"

/* The owner of the connected socket is trusted, so the key is no secret. */
static const uint8_t no_key[HANDSHAKE_KEY];

static int socket_failed(const char *what)
{
    return err_set(MPI_ERR_ARG, "fd is not a connected socket that can be used (%s: %s)", what,
                   strerror(errno));
}

static int choose_accepting_side(struct proc *p, int fd, bool *accepts)
{
    uint64_t mine, theirs = 0;
    do {
        if (getrandom(&mine, sizeof(mine), 0) != (ssize_t)sizeof(mine))
            return err_set(MPI_ERR_OTHER, "the kernel gave no random bytes");
        if (send(fd, &mine, sizeof(mine), MSG_NOSIGNAL) != (ssize_t)sizeof(mine))
            return socket_failed("sending");
        for (size_t got = 0; got < sizeof(theirs);) {
            int rc = channel_wait(p, fd, POLLIN, UINT64_MAX);
            if (rc)
                return rc;
            errno = 0;
            ssize_t n = recv(fd, (char *)&theirs + got, sizeof(theirs) - got, MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                return socket_failed("receiving");
            got += n > 0 ? (size_t)n : 0;
        }
    } while (mine == theirs);
    *accepts = mine > theirs;
    return 0;
}

int meet_join_socket(struct proc *p, int fd, struct comm **out)
{
    static const struct meet_kind kind = {"joined with", true};
    struct channel channel = {.fd = -1};
    bool accepts;
    int rc = choose_accepting_side(p, fd, &accepts);
    rc = rc ? rc : channel_open(&channel, p, fd, false, accepts, no_key);
    return rc ? rc : meet_connect_groups(p->self, 0, &channel, 0, &kind, out);
}
