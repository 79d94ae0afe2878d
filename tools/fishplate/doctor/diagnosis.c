/* diagnosis.c: determines the state of each rank from two samples, and prints the diagnosis as text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "why.h"

const char *why_state_word(enum why_state state)
{
    static const char *const words[] = {"unseen", "runs", "waits", "stopped", "finished", "gone"};
    return words[state];
}

/* True if both samples show the same wait on the same items. While an item is in transit, any arrival in
 * between counts as a change, because it may be a piece of that item. */
static bool is_wait_unchanged(const struct page_wait *before, const struct page_wait *now)
{
    if (!before || before->id != now->id || now->stirs != now->recorded_stirs ||
        before->nitems != now->nitems ||
        memcmp(before->items, now->items, now->nitems * sizeof(now->items[0])) != 0)
        return false;
    for (uint32_t i = 0; i < now->nitems; i++)
        if (now->items[i].step == PAGE_MOVING && now->stirs != before->stirs)
            return false;
    return true;
}

static void diagnosis_classify_rank(const struct sample *before, const struct sample *now, struct why_rank *r)
{
    *r = (struct why_rank){.state = WHY_UNSEEN};
    if (!now) {
        if (before)
            r->state = WHY_GONE;
        r->page = before ? &before->page : NULL;
        return;
    }
    r->page = &now->page;
    const struct page_wait *wait = page_first_wait(&now->page);
    if (now->state == 'Z' || now->state == 'X')
        r->state = WHY_GONE;
    else if (now->state == 'T' || now->state == 't')
        r->state = WHY_STOPPED;
    else if (now->page.life == PAGE_FINALIZED)
        r->state = WHY_FINISHED;
    else
        r->state = wait ? WHY_WAITS : WHY_RUNS;
    r->asleep = r->state == WHY_RUNS && now->state != 'R' && before && before->cpu_ns == now->cpu_ns;
    r->steady = r->state == WHY_WAITS && before && is_wait_unchanged(page_first_wait(&before->page), wait) &&
                !now->torn;
}

bool diagnosis_make(const struct snapshot *before, const struct snapshot *now, double apart,
                    struct diagnosis *out)
{
    *out = (struct diagnosis){.snapshot = now, .apart = apart};
    out->why.n = now->ranks;
    out->why.rank = calloc(now->ranks, sizeof(struct why_rank));
    out->waited_ns = calloc(now->ranks, sizeof(uint64_t));
    out->wording = (struct wording){.why = &out->why, .places = places_open(), .waited_ns = out->waited_ns};
    if (!out->why.rank || !out->waited_ns)
        return false;
    for (uint32_t r = 0; r < now->ranks; r++) {
        diagnosis_classify_rank(before->samples[r], now->samples[r], &out->why.rank[r]);
        const struct page_wait *wait = why_get_first_wait(&out->why.rank[r]);
        if (wait && now->samples[r]->now > wait->since)
            out->waited_ns[r] = now->samples[r]->now - wait->since;
    }
    return why_analyze_waits(&out->why);
}

void diagnosis_free(struct diagnosis *a)
{
    why_free(&a->why);
    places_close(a->wording.places);
    free(a->why.rank);
    free(a->waited_ns);
}

bool diagnosis_hangs(const struct diagnosis *a)
{
    for (size_t i = 0; i < a->why.nfindings; i++)
        if (a->why.findings[i].kind <= WHY_MISMATCH)
            return true;
    return false;
}

static uint32_t count_state(const struct diagnosis *a, enum why_state state)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < a->why.n; r++)
        n += a->why.rank[r].state == state;
    return n;
}

static void diagnosis_print_unseen(FILE *out, const struct diagnosis *a)
{
    uint32_t *ranks = malloc(a->why.n * sizeof(*ranks)), n = 0;
    for (uint32_t r = 0; ranks && r < a->why.n; r++)
        if (a->why.rank[r].state == WHY_UNSEEN)
            ranks[n++] = r;
    if (n > 0) {
        fprintf(out, "Not seen: ");
        words_print_ranks(out, ranks, n);
        fprintf(out, ". They have not called MPI_Init, have ended, or run on a host that did not answer; "
                     "what waits for them cannot be judged. Ask on the host where mpiexec runs: it knows all "
                     "hosts of the job.\n");
    }
    free(ranks);
}

void diagnosis_text(FILE *out, const struct diagnosis *a)
{
    const struct why *w = &a->why;
    fprintf(out, "Job %s: %u rank%s; %u wait%s in MPI, %u compute%s", a->snapshot->job, w->n,
            w->n == 1 ? "" : "s", w->waiting, w->waiting == 1 ? "s" : "", count_state(a, WHY_RUNS),
            count_state(a, WHY_RUNS) == 1 ? "s" : "");
    if (count_state(a, WHY_STOPPED))
        fprintf(out, ", %u stopped", count_state(a, WHY_STOPPED));
    if (count_state(a, WHY_FINISHED))
        fprintf(out, ", %u finished", count_state(a, WHY_FINISHED));
    if (count_state(a, WHY_GONE))
        fprintf(out, ", %u gone", count_state(a, WHY_GONE));
    fprintf(out, ".\n");
    for (size_t i = 0; i < w->nfindings && i < FINDINGS_MAX; i++) {
        fprintf(out, "\n");
        words_finding(out, &a->wording, &w->findings[i]);
    }
    if (w->nfindings > FINDINGS_MAX)
        fprintf(out, "\n... and %zu findings more; --json has all.\n", w->nfindings - FINDINGS_MAX);
    if (w->nfindings == 0)
        fprintf(out, w->waiting ? "No deadlock: what is waited for can still come.\n" : "Nobody waits.\n");
    if (w->unseen)
        diagnosis_print_unseen(out, a);
}
