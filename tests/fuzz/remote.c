/* remote.c: fuzzes the reports of agents, from any host and rank, as launcher/remote/remote.c interprets
 * them. The job and the tree are replaced by functions that check their arguments.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "launcher/remote/remote.c"

#include "fuzz.h"

enum { HOSTS = 3, RANKS = 5 };

static const struct tree_events *events;
static void *events_ctx;
static uint32_t host_of[RANKS] = {0, 1, 1, 2, 2};

static void expect_known_rank(const struct job_host *host, uint32_t rank)
{
    FUZZ_CHECK(host >= host->job->hosts && host < host->job->hosts + HOSTS);
    FUZZ_CHECK(rank < RANKS && host_of[rank] == (uint32_t)(host - host->job->hosts));
}

void job_on_started(void *host, uint32_t rank, pid_t pid)
{
    (void)pid;
    expect_known_rank(host, rank);
}
void job_on_failed(void *host, uint32_t rank, int status, const char *why)
{
    expect_known_rank(host, rank);
    FUZZ_CHECK(status >= 0 && status <= 255 && strlen(why) < 1u << 20);
}
void job_on_exited(void *host, uint32_t rank, int status)
{
    (void)status;
    expect_known_rank(host, rank);
}
void job_on_output(void *host, uint32_t rank, int fd, const char *data, size_t len)
{
    expect_known_rank(host, rank);
    FUZZ_CHECK((fd == 1 || fd == 2) && (len == 0 || data[0] == data[0]) &&
               (len == 0 || data[len - 1] == data[len - 1]));
}
void job_on_pmi(void *host, uint32_t rank, const char *data, size_t len)
{
    job_on_output(host, rank, 1, data, len);
}
void job_on_stdin_empty(void *host, uint32_t rank)
{
    expect_known_rank(host, rank);
}
void query_handle_answer(struct job *j, uint32_t host, uint32_t question, const char *data, size_t len)
{
    (void)question;
    FUZZ_CHECK(j && host < HOSTS && (len == 0 || data[len - 1] == data[len - 1]));
}
void job_on_host_done(void *host)
{
    ((struct job_host *)host)->done = true;
}
void job_on_host_lost(struct job_host *h, const char *why)
{
    FUZZ_CHECK(!h->done && strlen(why) < 1u << 20);
    h->done = true;
}

struct tree *tree_new(struct loop *l, const struct tree_spec *spec, const struct tree_events *ev, void *ctx)
{
    (void)l, (void)spec;
    events = ev;
    events_ctx = ctx;
    return NULL;
}
void tree_run(struct tree *t)
{
    (void)t;
}
void tree_send(struct tree *t, const struct frame_head *head, const void *data)
{
    (void)t, (void)head, (void)data;
}
void tree_child_ended(struct tree *t, pid_t pid, int status)
{
    (void)t, (void)pid, (void)status;
}
/* Copy of the function in link.c, which cannot be linked without sockets. */
bool link_read_u32(const char *data, size_t len, uint32_t *out)
{
    if (len < sizeof(*out))
        return false;
    memcpy(out, data, sizeof(*out));
    *out = ntohl(*out);
    return true;
}
void plan_encode(const struct plan *p, struct buf *out)
{
    (void)p, (void)out;
}

static void set_up_job(struct job *j, struct job_host *hosts, struct layout *layout)
{
    static struct plan any;
    static struct plan *plans[HOSTS] = {&any, &any, &any};
    static struct options o = {.launcher = "ssh", .fanout = 16};
    *layout = (struct layout){.size = RANKS, .host_of = host_of};
    memset(hosts, 0, HOSTS * sizeof(*hosts));
    *j = (struct job){.layout = layout, .opt = &o, .nhosts = HOSTS, .hosts = hosts};
    for (int i = 0; i < HOSTS; i++)
        hosts[i] = (struct job_host){.job = j, .name = "host"};
    if (!events)
        remote_start(j, plans);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct job j;
    static struct job_host hosts[HOSTS];
    static struct layout layout;
    struct fuzz_in in = {data, size};
    set_up_job(&j, hosts, &layout);
    ((struct remote *)events_ctx)->job = &j;
    while (in.left > 0) {
        struct frame_head h = {.type = (enum frame)(fuzz_u8(&in) % (FRAME_LAST + 2)),
                               .host = fuzz_u8(&in) % HOSTS, /* the tree has only these hosts */
                               .rank = fuzz_u8(&in)};
        char *payload = fuzz_copy(&in, fuzz_u8(&in), &h.len);
        events->frame(events_ctx, &h, payload);
        free(payload);
    }
    return 0;
}
