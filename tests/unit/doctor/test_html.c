/* test_html.c: the HTML page of a job of 4096 ranks: ranks that do the same share one node of the graph,
 * so that the page stays readable. A JavaScript interpreter renders the page; without one the test is skipped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/why.h"
#include "test.h"

enum { RANKS = 4096 };

static struct sample *samples[RANKS];

static void describe_rank(uint32_t r)
{
    struct sample *s = samples[r] = calloc(1, sizeof(*s));
    struct page *p = &s->page;
    struct page_wait *w = &p->waits[0];
    s->state = r == 77 ? 'R' : 'S';
    s->now = 60000000000u;
    p->rank = r;
    p->ranks = RANKS;
    snprintf(p->job, sizeof(p->job), "fp1-0");
    if (r == 77) /* computes while all ranks in the barrier wait for it */
        return;
    w->id = 1;
    w->since = 1000000000u;
    w->nitems = w->total = 1;
    w->groups[0] = (struct page_group){.rank = (int)r,
                                       .size = RANKS,
                                       .nruns = 1,
                                       .runs = {{.count = RANKS, .stride = 1}},
                                       .label = "MPI_COMM_WORLD"};
    if (r >= 4000) { /* these ranks receive from one another */
        snprintf(w->call, sizeof(w->call), "MPI_Recv");
        w->items[0] =
            (struct page_item){.kind = PAGE_RECV, .peer = (int)(r ^ 1), .rank = (int)(r ^ 1), .tag = 5};
    } else {
        snprintf(w->call, sizeof(w->call), "MPI_Barrier");
        w->items[0] =
            (struct page_item){.kind = PAGE_COLL, .peer = PAGE_UNKNOWN, .rank = PAGE_UNKNOWN, .number = 3};
    }
    p->comms[0].used = 1;
    p->comms[0].size = RANKS;
    p->comms[0].calls = r >= 4000 ? 2 : 3;
}

static int count_occurrences(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

int main(void)
{
    struct snapshot snapshot = {.job = "fp1-0", .ranks = RANKS, .samples = samples, .seen = RANKS};
    struct diagnosis a;
    char path[] = "/tmp/test_html.XXXXXX", command[512], page[200000];
    for (uint32_t r = 0; r < RANKS; r++)
        describe_rank(r);
    EXPECT(diagnosis_make(&snapshot, &snapshot, 0.25, &a));
    FILE *out = fdopen(mkstemp(path), "w");
    EXPECT(out != NULL);
    diagnosis_html(out, &a);
    fclose(out);
    snprintf(command, sizeof(command), "command -v node >/dev/null || exit 77; node %s %s", RENDER, path);
    FILE *rendered = popen(command, "r");
    EXPECT(rendered != NULL);
    const size_t size = fread(page, 1, sizeof(page) - 1, rendered);
    page[size] = '\0';
    const int status = pclose(rendered);
    unlink(path);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 77) {
        const int nodes = count_occurrences(page, "<rect class=\"");
        EXPECT(status == 0 && nodes >= 3 && nodes <= 48);
        EXPECT(size < sizeof(page) - 1);
        EXPECT(strstr(page, "rank 77") != NULL);
    }
    diagnosis_free(&a);
    for (uint32_t r = 0; r < RANKS; r++)
        free(samples[r]);
    return status ? 77 : 0;
}
