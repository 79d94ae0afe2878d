/* sample_wire.c: encodes samples for the transfer from a rank's host to the host of the query. Pure. A sample
 * is a header of fixed size, then the page as runs: two 16-bit counts (zero words, literal words) and the
 * literal words. A page is mostly zeros and shrinks to about a tenth. Both ends have the same version, which
 * mpiexec verifies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sample.h"

enum { WORDS = sizeof(struct page) / 8, RUN_MAX = UINT16_MAX };
_Static_assert(sizeof(struct page) % 8 == 0, "a page is made of words");

struct head {
    uint32_t bytes; /* length of the encoded sample */
    int32_t pid;
    uint64_t now, cpu_ns, memory;
    char state;
    uint8_t torn, unused[6];
};

struct run {
    uint16_t zeros, words;
};

static struct run find_next_run(const uint64_t *words, size_t at)
{
    struct run r = {0};
    for (; at < WORDS && words[at] == 0 && r.zeros < RUN_MAX; at++)
        r.zeros++;
    for (; at < WORDS && words[at] != 0 && r.words < RUN_MAX; at++)
        r.words++;
    return r;
}

void sample_write(FILE *out, const struct sample *s)
{
    uint64_t words[WORDS];
    struct head head = {.bytes = sizeof(head),
                        .pid = s->pid,
                        .now = s->now,
                        .cpu_ns = s->cpu_ns,
                        .memory = s->memory,
                        .state = s->state,
                        .torn = s->torn};
    memcpy(words, &s->page, sizeof(words));
    for (size_t at = 0; at < WORDS;) {
        const struct run r = find_next_run(words, at);
        head.bytes += (uint32_t)(sizeof(r) + r.words * 8u);
        at += (size_t)r.zeros + r.words;
    }
    fwrite(&head, sizeof(head), 1, out);
    for (size_t at = 0; at < WORDS;) {
        const struct run r = find_next_run(words, at);
        fwrite(&r, sizeof(r), 1, out);
        fwrite(words + at + r.zeros, 8, r.words, out);
        at += (size_t)r.zeros + r.words;
    }
}

/* Decodes a page; false if the runs are not exactly as long as a page. */
static bool read_page(const char *from, const char *end, struct page *page)
{
    char *to = (char *)page;
    size_t at = 0;
    memset(page, 0, sizeof(*page));
    while (at < WORDS) {
        struct run r;
        if ((size_t)(end - from) < sizeof(r))
            return false;
        memcpy(&r, from, sizeof(r));
        from += sizeof(r);
        if ((size_t)r.zeros + r.words == 0 || (size_t)r.zeros + r.words > WORDS - at ||
            (size_t)(end - from) < r.words * (size_t)8)
            return false;
        memcpy(to + (at + r.zeros) * 8, from, r.words * (size_t)8);
        from += r.words * (size_t)8;
        at += (size_t)r.zeros + r.words;
    }
    return from == end;
}

long sample_read(const void *bytes, size_t size, struct sample *out)
{
    struct head head;
    if (size < sizeof(head))
        return 0;
    memcpy(&head, bytes, sizeof(head));
    if (head.bytes < sizeof(head) || head.bytes > SAMPLE_WIRE_MAX)
        return -1;
    if (size < head.bytes)
        return 0;
    memset(out, 0, sizeof(*out));
    out->now = head.now;
    out->cpu_ns = head.cpu_ns;
    out->memory = head.memory;
    out->pid = head.pid;
    out->state = strchr("RSDTtZIX", head.state) && head.state ? head.state : 'R';
    out->torn = head.torn != 0;
    out->away = true;
    if (!read_page((const char *)bytes + sizeof(head), (const char *)bytes + head.bytes, &out->page) ||
        !page_check(&out->page))
        return -1;
    return (long)head.bytes;
}
