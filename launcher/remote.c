/*
 * Agents, seen from mpiexec. The secret cookie goes to an agent through the remote shell's standard input,
 * never on a command line, where every user of the host could read it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "remote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "boot/launch_env.h"
#include "link.h"
#include "spawn.h"

extern char **environ;

struct remote_host {
    struct job_host *host;
    struct plan *plan;
    struct link *link; /* NULL until the agent has called */
    pid_t shell;
    struct buf early; /* input that came before the agent had called */
};

/* A connection that has not said who it is. */
struct caller {
    struct remote *remote;
    struct link link;
    struct remote_host *host; /* once known */
};

struct remote {
    struct job *job;
    struct remote_host *hosts; /* [job->nhosts] */
    uint32_t expected;
    struct watch listener;
    struct timer deadline;
    char cookie[COOKIE_LEN + 1];
    char addresses[1024], port[8];
};

/* What the job asks of the host. */

static void ask_pmi(void *impl, uint32_t rank, const char *data, size_t len)
{
    struct remote_host *h = impl;
    if (h->link)
        link_send(h->link, FRAME_PMI, rank, data, len);
}

static void ask_input(void *impl, uint32_t rank, const char *data, size_t len)
{
    struct remote_host *h = impl;
    if (h->link)
        link_send(h->link, FRAME_INPUT, rank, data, len);
    else
        link_frame(&h->early, FRAME_INPUT, rank, data, len);
}

static void ask_signal(void *impl, int sig)
{
    struct remote_host *h = impl;
    if (h->link) {
        link_send_u32(h->link, FRAME_SIGNAL, 0, (uint32_t)sig);
        return;
    }
    /* It has no ranks yet and must not get any. */
    if (h->shell > 0)
        kill(-h->shell, SIGTERM);
    job_on_done(h->host);
}

static void ask_pause(void *impl, bool pause)
{
    struct remote_host *h = impl;
    if (h->link)
        link_send_u32(h->link, FRAME_PAUSE, 0, pause);
}

static const struct host_ops remote_ops = {ask_pmi, ask_input, ask_signal, ask_pause, NULL};

/* What the agent reports. */

static void lost(struct remote_host *h, const char *why)
{
    if (!h->host->done)
        job_on_lost(h->host, why);
}

static bool rank_is_here(const struct remote_host *h, uint32_t rank)
{
    const struct job *j = h->host->job;
    return rank < j->layout->size && &j->hosts[j->layout->host_of[rank]] == h->host;
}

static void agent_frame(struct remote_host *h, enum frame type, uint32_t rank, const char *data, size_t len)
{
    struct job_host *host = h->host;
    uint32_t value = 0;
    if (type == FRAME_DONE) {
        job_on_done(host);
        return;
    }
    bool numbered = type == FRAME_STARTED || type == FRAME_FAILED || type == FRAME_EXITED;
    if (!rank_is_here(h, rank) || (numbered && !link_u32(data, len, &value))) {
        link_close(h->link);
        lost(h, "its agent sent something that cannot be");
        return;
    }
    switch (type) {
    case FRAME_OUTPUT:
    case FRAME_ERROR:
        job_on_output(host, rank, type == FRAME_OUTPUT ? 1 : 2, data, len);
        break;
    case FRAME_PMI:
        job_on_pmi(host, rank, data, len);
        break;
    case FRAME_STARTED:
        job_on_started(host, rank, (pid_t)value);
        break;
    case FRAME_FAILED: {
        char *why = xstrf("%.*s", (int)(len - 4), data + 4);
        job_on_failed(host, rank, (int)(value & 0xff), why);
        free(why);
        break;
    }
    case FRAME_EXITED:
        job_on_exited(host, rank, (int)value);
        break;
    case FRAME_INPUT_TAKEN:
        job_on_stdin_empty(host, rank);
        break;
    default:
        break;
    }
}

/* The cookie proves that the caller is the agent we started. Compared without stopping early. */
static bool cookie_matches(const char *given, const char *wanted)
{
    unsigned differ = 0;
    for (int i = 0; i < COOKIE_LEN; i++)
        differ |= (unsigned char)given[i] ^ (unsigned char)wanted[i];
    return differ == 0;
}

static void greet(struct caller *c, const char *data, size_t len)
{
    struct remote *r = c->remote;
    char cookie[COOKIE_LEN + 1], version[64], *text = xstrf("%.*s", (int)len, data);
    unsigned index;
    int n = sscanf(text, "%32s %u %63s", cookie, &index, version);
    free(text);
    if (n != 3 || strlen(cookie) != COOKIE_LEN || !cookie_matches(cookie, r->cookie) ||
        index >= r->job->nhosts || !r->hosts[index].plan || r->hosts[index].link) {
        link_close(&c->link);
        return;
    }
    struct remote_host *h = &r->hosts[index];
    c->host = h;
    h->link = &c->link;
    c->link.greeted = true;
    if (--r->expected == 0) {
        loop_close(&r->job->loop, &r->listener);
        loop_cancel(&r->job->loop, &r->deadline);
    }
    if (strcmp(version, FISHPLATE_VERSION) != 0) {
        char *why = xstrf("its mpiexec is of Fishplate %s, this one of %s", version, FISHPLATE_VERSION);
        link_close(&c->link);
        lost(h, why);
        free(why);
        return;
    }
    if (h->host->done) {
        link_close(&c->link);
        return;
    }
    struct buf plan = {0};
    plan_encode(h->plan, &plan);
    link_send(&c->link, FRAME_PLAN, 0, buf_head(&plan), buf_size(&plan));
    buf_free(&plan);
    link_send_frames(&c->link, &h->early);
}

static void on_frame(void *ctx, enum frame type, uint32_t rank, const char *data, size_t len)
{
    struct caller *c = ctx;
    if (c->host)
        agent_frame(c->host, type, rank, data, len);
    else if (type == FRAME_HELLO)
        greet(c, data, len);
    else
        link_close(&c->link);
}

static void on_closed(void *ctx, const char *why)
{
    struct caller *c = ctx;
    if (c->host)
        lost(c->host, why);
}

static void on_call(void *ctx, uint32_t events)
{
    struct remote *r = ctx;
    (void)events;
    int fd = accept4(r->listener.fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct caller *c = xcalloc(1, sizeof *c);
    c->remote = r;
    c->link = (struct link){.frame = on_frame, .closed = on_closed, .ctx = c};
    link_open(&c->link, &r->job->loop, fd);
}

static void on_deadline(void *ctx)
{
    struct remote *r = ctx;
    struct job *j = r->job;
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (r->hosts[i].plan && !r->hosts[i].link && !j->hosts[i].done) {
            char *why = xstrf(
                "no agent called back within %ld seconds (FISHPLATE_INIT_TIMEOUT); it tries %s, port %s",
                j->opt->init_timeout, r->addresses, r->port);
            lost(&r->hosts[i], why);
            free(why);
        }
}

/* Both families where the kernel has both. */
static int listen_any(char *port, size_t size)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), zero = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
        if (bind(fd, (struct sockaddr *)&six, sizeof six) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&four, sizeof four) != 0)
            die(1, "No socket for the agents can be made: %s.", strerror(errno));
    }
    union {
        struct sockaddr_in6 six;
        struct sockaddr_in four;
        struct sockaddr any;
    } name;
    socklen_t len = sizeof name;
    if (listen(fd, 512) != 0 || getsockname(fd, &name.any, &len) != 0)
        die(1, "Agents cannot be listened for: %s.", strerror(errno));
    snprintf(port, size, "%u",
             ntohs(name.any.sa_family == AF_INET6 ? name.six.sin6_port : name.four.sin_port));
    return fd;
}

static void add_address(char *out, size_t size, const char *address)
{
    size_t used = strlen(out);
    if (used + strlen(address) + 2 < size)
        snprintf(out + used, size - used, "%s%s", used ? "," : "", address);
}

/* Every address an agent could call; the loopback last, for agents on this machine. */
static void own_addresses(char *out, size_t size)
{
    struct ifaddrs *list;
    if (getifaddrs(&list) == 0) {
        for (struct ifaddrs *a = list; a; a = a->ifa_next) {
            char text[INET6_ADDRSTRLEN];
            if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || (a->ifa_flags & IFF_LOOPBACK))
                continue;
            if (a->ifa_addr->sa_family == AF_INET) {
                struct sockaddr_in *four = (void *)a->ifa_addr;
                add_address(out, size, inet_ntop(AF_INET, &four->sin_addr, text, sizeof text));
            } else if (a->ifa_addr->sa_family == AF_INET6) {
                struct sockaddr_in6 *six = (void *)a->ifa_addr;
                if (!IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
                    add_address(out, size, inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text));
            }
        }
        freeifaddrs(list);
    }
    add_address(out, size, "127.0.0.1");
}

static void make_cookie(char *out)
{
    unsigned char bytes[COOKIE_LEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        die(1, "The kernel gives no random bytes: %s.", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
}

/* A remote shell hands its words to another shell, so unusual ones are quoted. */
static char *quoted(const char *word)
{
    struct buf b = {0};
    if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+@%-")] == '\0')
        return xstrdup(word);
    buf_add(&b, "'", 1);
    for (; *word; word++) {
        if (*word == '\'')
            buf_add(&b, "'\\''", 4);
        else
            buf_add(&b, word, 1);
    }
    buf_add(&b, "'", 2);
    return b.data;
}

/* The command that runs its further words on that host. */
static void shell_words(const struct job *j, const char *host, struct strings *words)
{
    static const char *const srun[] = {"srun", "--nodes=1", "--ntasks=1", "--overlap", "--mpi=none"};
    if (!j->opt->launcher_exec && strcmp(j->opt->launcher, "slurm") == 0) {
        for (size_t i = 0; i < COUNT_OF(srun); i++)
            strings_add(words, srun[i]);
        char *list = xstrf("--nodelist=%s", host);
        strings_add(words, list);
        free(list);
        return;
    }
    char *copy = xstrdup(j->opt->launcher_exec ? j->opt->launcher_exec : j->opt->launcher), *save = NULL;
    for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
        strings_add(words, w);
    free(copy);
    if (words->n == 0)
        die(STATUS_USAGE, "-launcher-exec names no command.");
    if (!j->opt->launcher_exec && strcmp(j->opt->launcher, "ssh") == 0) {
        /* There is no terminal to ask for a password on. */
        strings_add(words, "-x");
        strings_add(words, "-oBatchMode=yes");
    }
    strings_add(words, host);
}

static void start_agent(struct remote *r, uint32_t index)
{
    struct remote_host *h = &r->hosts[index];
    struct strings words = {0};
    char self[4096], number[16];
    int in[2];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    snprintf(number, sizeof number, "%u", index);
    shell_words(r->job, h->host->name, &words);
    char *path = spawn_find(words.v[0], getenv("PATH"), ".");
    strings_add(&words, quoted(self));
    strings_add(&words, AGENT_OPTION);
    strings_add(&words, r->addresses);
    strings_add(&words, r->port);
    strings_add(&words, number);
    if (!path || pipe2(in, O_CLOEXEC) != 0) {
        char *why = xstrf("the command %s, which should start its agent, cannot be run: %s", words.v[0],
                          strerror(errno));
        lost(h, why);
        free(why);
        return;
    }
    if (r->job->opt->verbose)
        say("Starting an agent on host %s with %s.", h->host->name, words.v[0]);
    ssize_t sent = write(in[1], r->cookie, COOKIE_LEN);
    (void)sent; /* an empty pipe has room */
    close(in[1]);
    struct spawn s = {.path = path, .argv = words.v, .env = environ, .in = in[0], .out = 2, .err = 2};
    h->shell = spawn_process(&s, NULL);
    close(in[0]);
    free(path);
    if (h->shell < 0) {
        char *why = xstrf("the command %s, which should start its agent, cannot be run: %s", words.v[0],
                          strerror(errno));
        lost(h, why);
        free(why);
    }
}

void remote_child_ended(void *ctx, pid_t pid, int status)
{
    struct job_host *any = ctx;
    struct remote *r = any->job->remote;
    for (uint32_t i = 0; r && i < r->job->nhosts; i++) {
        struct remote_host *h = &r->hosts[i];
        if (h->shell != pid)
            continue;
        h->shell = 0;
        /* One that leaves the agent in the background and ends well is no failure. */
        if (!h->link && status != 0) {
            const char *command =
                r->job->opt->launcher_exec ? r->job->opt->launcher_exec : r->job->opt->launcher;
            char *why = WIFSIGNALED(status)
                            ? xstrf("its agent could not be started: `%s %s` was killed by signal %d",
                                    command, h->host->name, WTERMSIG(status))
                            : xstrf("its agent could not be started: `%s %s` exited with status %d", command,
                                    h->host->name, WEXITSTATUS(status));
            lost(h, why);
            free(why);
        }
    }
}

void remote_start(struct job *j, struct plan **plans)
{
    struct remote *r = xcalloc(1, sizeof *r);
    r->job = j;
    r->hosts = xcalloc(j->nhosts, sizeof *r->hosts);
    for (uint32_t i = 0; i < j->nhosts; i++) {
        r->hosts[i] = (struct remote_host){.host = &j->hosts[i], .plan = plans[i]};
        r->expected += plans[i] != NULL;
        if (plans[i]) {
            j->hosts[i].ops = &remote_ops;
            j->hosts[i].impl = &r->hosts[i];
        }
    }
    if (r->expected == 0) {
        free(r->hosts);
        free(r);
        return;
    }
    j->remote = r;
    make_cookie(r->cookie);
    own_addresses(r->addresses, sizeof r->addresses);
    r->listener = (struct watch){.fd = -1, .fn = on_call, .ctx = r};
    loop_add(&j->loop, &r->listener, listen_any(r->port, sizeof r->port), EPOLLIN);
    r->deadline = (struct timer){.fn = on_deadline, .ctx = r};
    loop_after(&j->loop, &r->deadline, (uint64_t)j->opt->init_timeout * 1000);
    for (uint32_t i = 0; i < j->nhosts && !j->failed; i++)
        if (plans[i])
            start_agent(r, i);
}
