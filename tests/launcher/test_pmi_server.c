/* test_pmi_server.c: the PMI-1 server, driven byte by byte: its answers, and that no input of a rank crashes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "boot/pmi_line.h"
#include "pmi/pmi.h"
#include "test.h"
#include "core/util.h"

static struct buf answers;
static int abort_calls, bad_calls, abort_code;
static char abort_msg[256];

static void on_reply(void *ctx, uint32_t rank, const char *data, size_t len)
{
    (void)ctx;
    (void)rank;
    buf_add(&answers, data, len);
}

static void on_aborted(void *ctx, uint32_t rank, int code, const char *msg)
{
    (void)ctx;
    (void)rank;
    abort_calls++;
    abort_code = code;
    snprintf(abort_msg, sizeof(abort_msg), "%s", msg);
}

static void on_bad(void *ctx, uint32_t rank, const char *why)
{
    (void)ctx;
    (void)rank;
    (void)why;
    bad_calls++;
}

static void on_barrier(void *ctx, bool open)
{
    (void)ctx;
    (void)open;
}

static void on_describe(void *ctx, const bool *arrived, char *out, size_t size)
{
    (void)ctx;
    (void)arrived;
    snprintf(out, size, "rank 1 on host a b");
}

static void on_inited(void *ctx, uint32_t rank)
{
    (void)ctx;
    (void)rank;
}

/* A job with the command "x y" starts, others fail. */
static unsigned on_spawn(void *ctx, uint32_t rank, char *lines, char **why)
{
    (void)ctx;
    (void)rank;
    bool good = strstr(lines, "execname=x y\n") != NULL;
    free(lines);
    if (!good)
        *why = xstrdup("not that one");
    return good ? 7 : 0;
}

static const char *on_spawn_state(void *ctx, unsigned number)
{
    (void)ctx;
    return number == 7 ? NULL : "it has gone";
}

static const struct pmi_events events = {on_reply,   on_inited,   on_aborted, on_bad,
                                         on_barrier, on_describe, on_spawn,   on_spawn_state};

static struct pmi *start_server(uint32_t size)
{
    buf_free(&answers);
    abort_calls = bad_calls = 0;
    return pmi_new(size, size + 1, "job1", "(vector,(0,1,2))", NULL, &events, NULL);
}

/* Sends the request and returns the reply without its newline. */
static const char *request_reply(struct pmi *s, uint32_t rank, const char *request)
{
    buf_free(&answers);
    pmi_input(s, rank, request, strlen(request));
    buf_add(&answers, "", 1);
    char *newline = strchr(answers.data, '\n');
    if (newline)
        *newline = '\0';
    return answers.data;
}

static void test_commands(void)
{
    struct pmi *s = start_server(2);
    EXPECT_STR(request_reply(s, 0, "cmd=init pmi_version=1 pmi_subversion=1\n"),
               "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    EXPECT(pmi_inited(s, 0) && !pmi_inited(s, 1));
    EXPECT(strstr(request_reply(s, 0, "cmd=get_maxes\n"), "vallen_max=1024"));
    EXPECT(strstr(request_reply(s, 0, "cmd=get_universe_size\n"), "size=3"));
    EXPECT(strstr(request_reply(s, 0, "cmd=get_appnum\n"), "appnum=0"));
    EXPECT(strstr(request_reply(s, 0, "cmd=get_my_kvsname\n"), "kvsname=job1"));
    EXPECT_STR(request_reply(s, 0, "cmd=put kvsname=job1 key=k value=a=b\n"),
               "cmd=put_result rc=0 msg=success");
    EXPECT_STR(request_reply(s, 1, "key=k  kvsname=job1 cmd=get \n"),
               "cmd=get_result rc=0 msg=success value=a=b");
    EXPECT(strstr(request_reply(s, 1, "cmd=get kvsname=other key=k\n"), "rc=-1"));
    EXPECT(strstr(request_reply(s, 1, "cmd=get kvsname=job1 key=none\n"), "rc=-1"));
    EXPECT(strstr(request_reply(s, 0, "cmd=get kvsname=job1 key=PMI_process_mapping\n"),
                  "value=(vector,(0,1,2))"));
    EXPECT_STR(request_reply(s, 0, "cmd=put kvsname=job1 key=q value=1 quiet=1\n"), "");
    EXPECT(strstr(request_reply(s, 0, "cmd=publish_name service=s port=p\n"), "rc=0"));
    EXPECT(strstr(request_reply(s, 1, "cmd=lookup_name service=s\n"), "port=p"));
    EXPECT(strstr(request_reply(s, 0, "cmd=unpublish_name service=s\n"), "rc=0"));
    EXPECT(strstr(request_reply(s, 1, "cmd=lookup_name service=s\n"), "rc=-1"));
    EXPECT_STR(request_reply(s, 0, "mcmd=spawn\nnprocs=1\nexecname=x y\nendcmd\n"),
               "cmd=spawn_result rc=0 jobid=7");
    EXPECT_STR(request_reply(s, 0, "mcmd=spawn\nnprocs=1\nexecname=z\nendcmd\n"),
               "cmd=spawn_result rc=-1 msg=not%20that%20one");
    /* Two programs are started by one request with one answer. */
    EXPECT_STR(
        request_reply(s, 1, "mcmd=spawn\nnprocs=1\nexecname=x y\ntotspawns=2\nspawnssofar=1\nendcmd\n"), "");
    EXPECT_STR(request_reply(s, 1, "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nendcmd\n"),
               "cmd=spawn_result rc=0 jobid=7");
    EXPECT(strstr(request_reply(s, 0, "cmd=spawn_state jobid=7\n"), "rc=0"));
    EXPECT_STR(request_reply(s, 0, "cmd=spawn_state jobid=8\n"),
               "cmd=spawn_state_result rc=-1 msg=it%20has%20gone");
    pmi_put_initial(s, "later=a=b");
    EXPECT(strstr(request_reply(s, 0, "cmd=get kvsname=job1 key=later\n"), "value=a=b"));
    EXPECT_STR(request_reply(s, 0, "cmd=barrier_in\n"), "");
    EXPECT_STR(request_reply(s, 0, "cmd=missing\n"), "cmd=missing_result msg=rank%201%20on%20host%20a%20b");
    request_reply(s, 1, "cmd=barrier_in\n");
    EXPECT_EQ(buf_size(&answers), 2 * strlen("cmd=barrier_out rc=0\n") + 1);
    EXPECT(pmi_get_waiting(s) == NULL);
    request_reply(s, 1, "cmd=abort exitcode=-3 msg=no%20luck\n");
    EXPECT_EQ(abort_calls, 1);
    EXPECT_EQ(abort_code, -3);
    EXPECT_STR(abort_msg, "no luck");
    request_reply(s, 0, "cmd=finalize\n");
    EXPECT(pmi_finalized(s, 0) && !pmi_finalized(s, 1));
    EXPECT_EQ(bad_calls, 0);
    pmi_free(s);
}

static void test_pieces(void)
{
    static const char text[] = "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\ncmd=finalize\n";
    struct pmi *s = start_server(1);
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        pmi_input(s, 0, text + i, 1);
    EXPECT(pmi_finalized(s, 0));
    EXPECT_EQ(bad_calls, 0);
    pmi_free(s);
}

static void test_invalid_requests(void)
{
    static const char *const lines[] = {"nonsense\n",   "cmd=unknown\n", "\n",  "=x\n", "cmd=init \x01\n",
                                        "mcmd=other\n", "cmd=\n",        " \n", "cmd\n"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct pmi *s = start_server(1);
        request_reply(s, 0, lines[i]);
        EXPECT_EQ(bad_calls, 1);
        request_reply(s, 0, "cmd=get_maxes\n"); /* ignored after the error */
        EXPECT_EQ(buf_size(&answers), 1);
        pmi_free(s);
    }
    struct pmi *s = start_server(1);
    char *lots = xcalloc(1, 200000);
    memset(lots, 'a', 200000);
    pmi_input(s, 0, lots, 200000);
    EXPECT_EQ(bad_calls, 1);
    free(lots);
    pmi_free(s);
}

/* Sends valid requests with a few changed bytes: the server must return from each. */
static void test_fuzz(void)
{
    static const char *const seeds[] = {"cmd=init pmi_version=1 pmi_subversion=1\n",
                                        "cmd=put kvsname=job1 key=key value=value\n",
                                        "cmd=get kvsname=job1 key=key\n",
                                        "cmd=barrier_in\n",
                                        "cmd=abort exitcode=1 msg=%20%0a%zz%\n",
                                        "mcmd=spawn\nnprocs=1\nendcmd\n",
                                        "cmd=missing\n"};
    srand(7);
    for (int round = 0; round < 20000; round++) {
        struct pmi *s = start_server(2);
        for (int k = 0; k < 4; k++) {
            char line[128];
            size_t len = strlen(seeds[(size_t)rand() % COUNT_OF(seeds)]);
            const char *seed = seeds[(size_t)rand() % COUNT_OF(seeds)];
            len = strlen(seed);
            memcpy(line, seed, len);
            for (int n = rand() % 4; n > 0; n--)
                line[(size_t)rand() % len] = (char)(rand() % 3 ? "=% \n\t0kvc"[rand() % 9] : rand());
            pmi_input(s, (uint32_t)(rand() % 2), line, len);
        }
        pmi_free(s);
    }
}

int main(void)
{
    TEST_RUN(test_commands);
    TEST_RUN(test_pieces);
    TEST_RUN(test_invalid_requests);
    TEST_RUN(test_fuzz);
    buf_free(&answers);
    return test_result();
}
