/* samples.c: fuzzes the samples that an agent sends about the ranks of its host, which `fishplate ps`
 * reads. An accepted sample must not change when it is written and read again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sample.h"

static void read_samples(const uint8_t *data, size_t size)
{
    static struct sample one, again;
    static char bytes[SAMPLE_WIRE_MAX];
    size_t at = 0;
    for (long n; (n = sample_read(data + at, size - at, &one)) > 0; at += (size_t)n) {
        FUZZ_CHECK((size_t)n <= size - at && one.away && one.page.rank < one.page.ranks);
        FILE *out = fmemopen(bytes, sizeof(bytes), "w");
        if (!out)
            return;
        sample_write(out, &one);
        const long wrote = ftell(out);
        fclose(out);
        FUZZ_CHECK(sample_read(bytes, (size_t)wrote, &again) == wrote);
        FUZZ_CHECK(sample_read(bytes, (size_t)wrote - 1, &again) == 0);
        FUZZ_CHECK(memcmp(&one.page, &again.page, sizeof(one.page)) == 0 && one.now == again.now);
    }
}

/* Builds a valid sample, some bytes of which the input replaces. */
static size_t make_valid_sample(uint8_t *bytes, size_t room)
{
    static struct sample s;
    struct page *p = &s.page;
    s.state = 'S';
    p->magic = PAGE_MAGIC;
    p->size = sizeof(*p);
    p->ranks = 4;
    snprintf(p->job, sizeof(p->job), "fp1-0");
    p->waits[0].id = 1;
    FILE *out = fmemopen(bytes, room, "w");
    if (!out)
        return 0;
    sample_write(out, &s);
    const long wrote = ftell(out);
    fclose(out);
    return (size_t)wrote;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[SAMPLE_WIRE_MAX];
    const size_t n = make_valid_sample(bytes, sizeof(bytes));
    read_samples(data, size);
    for (size_t i = 0; i + 2 <= size && n > 0; i += 2)
        bytes[data[i] % n] = data[i + 1];
    read_samples(bytes, n);
    return 0;
}
