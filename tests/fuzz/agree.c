/* agree.c: messages of an agreement that any member may send in any order, mixed with deaths. Nothing outside of the object is
 * read or written, every message goes to a member, and a decision once made stays the same.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/agree.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MEMBERS_MAX = 130, WORDS_MAX = 8, STEPS_MAX = 200 };

static struct agree *it;

static void test_sent(void *arg, uint32_t to, const struct agree_message *m)
{
    (void)arg;
    FUZZ_CHECK(to < it->n);
    FUZZ_CHECK(m->epoch < it->n && m->kind <= AGREE_DOWN);
}

static void agree_receive_random(struct fuzz_in *in, const struct agree_out *out)
{
    const size_t size = agree_message_size(it);
    struct agree_message *m = calloc(1, size); /* exactly as long as round.c lets pass */
    uint32_t from = fuzz_u8(in);
    fuzz_bytes(in, m, size);
    if (from & 1) { /* a likely one; others are mostly dropped at once */
        m->kind &= 1;
        m->decided &= 1;
        m->epoch %= it->n;
    }
    agree_receive(it, from / 2, m, out);
    free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint64_t words[WORDS_MAX], decision[WORDS_MAX];
    const uint32_t n = 1 + fuzz_u8(&in) % MEMBERS_MAX, me = fuzz_u8(&in) % n,
                   nwords = 1 + fuzz_u8(&in) % WORDS_MAX;
    it = malloc(agree_size(n, nwords));
    agree_init(it, n, me, nwords);
    struct agree_out out = {.send = test_sent, .scratch = malloc(agree_message_size(it))};
    bool decided = false;
    memset(words, 0x5a, sizeof(words));
    for (int i = 0; i < STEPS_MAX && in.left > 0; i++) {
        const uint8_t what = fuzz_u8(&in);
        if (what % 4 == 0)
            agree_member_died(it, fuzz_u8(&in), &out);
        else if (what % 4 == 1 && !it->begun)
            agree_begin(it, words, &out);
        else
            agree_receive_random(&in, &out);
        if (decided)
            FUZZ_CHECK(memcmp(decision, agree_get_result(it), nwords * sizeof(uint64_t)) == 0);
        decided = it->decided;
        memcpy(decision, agree_get_result(it), nwords * sizeof(uint64_t));
    }
    free(out.scratch);
    free(it);
    return 0;
}
