/* diagnosis_json.c: prints the diagnosis as JSON, and as a web page that renders the JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "../web_page.h"
#include "cli/json.h"
#include "why.h"

static const char page_script[] =
#include "why_page.js.inc"
    ;

static const char *const kinds[] = {"receive", "send", "probe", "collective", "creation",
                                    "room",    "lock", "named", "other"};
static const char *const steps[] = {"posted", "queued", "moving"};
static const char *const names[] = {"deadlock", "deserted", "mismatch", "missing",
                                    "slow",     "unmoved",  "unknown"};

static void write_item(struct json *j, const struct page_wait *wait, const struct page_item *item)
{
    json_object(j, NULL);
    json_members(j, "kind=%s step=%s", kinds[item->kind], steps[item->step]);
    if (item->peer != PAGE_UNKNOWN)
        json_int(j, "peer", item->peer);
    if (item->kind <= PAGE_PROBE)
        json_int(j, "tag", item->tag);
    if (item->kind == PAGE_COLL)
        json_int(j, "number", (long long)item->number);
    if (item->kind == PAGE_COLL && item->rank >= 0)
        json_int(j, "root", item->rank);
    json_int(j, "bytes", (long long)item->bytes);
    if (item->group < PAGE_GROUPS)
        json_string(j, item->kind == PAGE_LOCK || item->kind == PAGE_NAMED ? "name" : "communicator",
                    wait->groups[item->group].label);
    json_end(j);
}

static void write_rank(struct json *j, const struct diagnosis *a, uint32_t r)
{
    const struct why_rank *rank = &a->why.rank[r];
    const struct page_wait *wait = why_get_first_wait(rank);
    json_object(j, NULL);
    json_members(j, "rank=%d state=%s", r, why_state_word(rank->state));
    json_bool(j, "live", rank->live);
    if (rank->page) {
        json_members(j, "host=%s pid=%d", rank->page->host, rank->page->pid);
    }
    if (rank->next >= 0)
        json_int(j, "waits_for", rank->next);
    if (wait) {
        json_members(j, "call=%s at=%s seconds=%g", wait->call, place_text(a->wording.places, &wait->caller),
                     (double)a->waited_ns[r] * 1e-9);
        json_bool(j, "steady", rank->steady);
        json_bool(j, "any", wait->any != 0);
        json_int(j, "requests", wait->total);
        json_array(j, "items");
        for (uint32_t k = 0; k < wait->nitems; k++)
            write_item(j, wait, &wait->items[k]);
        json_end(j);
    }
    json_end(j);
}

static void write_ranks(struct json *j, const char *key, const uint32_t *ranks, uint32_t n)
{
    json_array(j, key);
    for (uint32_t i = 0; i < n; i++)
        json_int(j, NULL, ranks[i]);
    json_end(j);
}

static void write_finding(struct json *j, const struct diagnosis *a, const struct why_finding *f)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    json_object(j, NULL);
    json_string(j, "kind", names[f->kind]);
    write_ranks(j, "ranks", f->ranks, f->nranks);
    write_ranks(j, "behind", f->behind, f->nbehind);
    if (f->meeting) {
        json_string(j, "communicator", f->meeting->group->label);
        write_ranks(j, "waiting", f->meeting->waiting, f->meeting->nwaiting);
        write_ranks(j, "missing", f->meeting->missing, f->meeting->nmissing);
        write_ranks(j, "strangers", f->meeting->strangers, f->meeting->nstrangers);
    }
    if (out) {
        words_finding(out, &a->wording, f);
        fclose(out);
        json_string(j, "text", text);
        free(text);
    }
    json_end(j);
}

static void write_collective(struct json *j, const struct why_meeting *m)
{
    json_object(j, NULL);
    json_string(j, "communicator", m->group->label);
    write_ranks(j, "waiting", m->waiting, m->nwaiting);
    write_ranks(j, "missing", m->missing, m->nmissing);
    json_end(j);
}

void diagnosis_json(FILE *out, const struct diagnosis *a)
{
    struct json j = {.out = out, .flat = 3};
    json_object(&j, NULL);
    json_members(&j, "job=%s size=%d", a->snapshot->job, a->why.n);
    json_bool(&j, "hangs", diagnosis_hangs(a));
    json_array(&j, "findings");
    for (size_t i = 0; i < a->why.nfindings; i++)
        write_finding(&j, a, &a->why.findings[i]);
    json_end(&j);
    json_array(&j, "collectives");
    for (size_t i = 0; i < a->why.nmeetings; i++)
        write_collective(&j, &a->why.meetings[i]);
    json_end(&j);
    json_array(&j, "ranks");
    for (uint32_t r = 0; r < a->why.n; r++)
        write_rank(&j, a, r);
    json_end(&j);
    json_end(&j);
    fputc('\n', out);
}

void diagnosis_html(FILE *out, const void *diagnosis)
{
    web_page_begin(out);
    diagnosis_json(out, diagnosis);
    web_page_end(out, page_script);
}
