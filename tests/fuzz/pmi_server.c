/* pmi_server.c: fuzzes the data that ranks send to mpiexec's PMI-1 server, in pieces of any length, from
 * any rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "launcher/pmi/pmi.h"

#include "boot/pmi_line.h"
#include "fuzz.h"
#include "core/util.h"

enum { RANKS = 3 };

static void on_reply(void *ctx, uint32_t rank, const char *data, size_t len)
{
    (void)ctx;
    FUZZ_CHECK(rank < RANKS && len > 0 && data[len - 1] == '\n');
}
static void on_inited(void *ctx, uint32_t rank)
{
    (void)ctx;
    FUZZ_CHECK(rank < RANKS);
}
static void on_aborted(void *ctx, uint32_t rank, int code, const char *msg)
{
    (void)ctx, (void)code;
    FUZZ_CHECK(rank < RANKS && strlen(msg) < PMI_LINE_MAX);
}
static void on_bad(void *ctx, uint32_t rank, const char *why)
{
    bool *ended = ctx;
    FUZZ_CHECK(rank < RANKS && *why);
    ended[rank] = true;
}
static void on_barrier(void *ctx, bool open)
{
    (void)ctx, (void)open;
}
static void on_describe(void *ctx, const bool *arrived, char *out, size_t size)
{
    (void)ctx, (void)arrived;
    snprintf(out, size, "some ranks");
}

static unsigned on_spawn(void *ctx, uint32_t rank, char *lines, char **why)
{
    (void)ctx;
    bool even = strlen(lines) % 2 == 0;
    FUZZ_CHECK(rank < RANKS);
    free(lines);
    if (!even)
        *why = xstrdup("no");
    return even;
}

static const char *on_spawn_state(void *ctx, unsigned number)
{
    (void)ctx;
    return number % 2 ? NULL : "it has gone";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pmi_events events = {on_reply,   on_inited,   on_aborted, on_bad,
                                             on_barrier, on_describe, on_spawn,   on_spawn_state};
    static const uint32_t app_of[RANKS] = {0, 0, 1};
    bool ended[RANKS] = {false};
    struct pmi *s = pmi_new(RANKS, RANKS, "job", "(vector,(0,1,3))", app_of, &events, ended);
    struct fuzz_in in = {data, size};
    while (in.left > 0) {
        uint32_t rank = fuzz_u8(&in) % RANKS;
        size_t len;
        char *piece = fuzz_copy(&in, fuzz_u8(&in), &len);
        if (!ended[rank]) /* the job closes the connection of a rank after a protocol error */
            pmi_input(s, rank, piece, len);
        free(piece);
    }
    FUZZ_CHECK(pmi_active_count(s) <= pmi_inited_count(s) && pmi_inited_count(s) <= RANKS);
    pmi_free(s);
    return 0;
}
