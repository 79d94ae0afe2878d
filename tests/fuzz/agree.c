/* agree.c: fuzzes the agreement with messages of any member in any order, mixed with deaths: nothing
 * outside the object is read or written, every message is sent to a member, and a decision does not
 * change.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/agree.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MEMBERS_MAX = 130, WORDS_MAX = 8, STEPS_MAX = 200 };

static struct agree *agreement;

static void check_sent_message(void *arg, uint32_t to, const struct agree_message *m)
{
    (void)arg;
    FUZZ_CHECK(to < agreement->n);
    FUZZ_CHECK(m->epoch < agreement->n && m->kind <= AGREE_DOWN);
}

static void receive_random_message(struct fuzz_in *in, const struct agree_out *out)
{
    const size_t size = agree_message_size(agreement);
    struct agree_message *m = calloc(1, size); /* round.c accepts only messages of this size */
    uint32_t from = fuzz_u8(in);
    fuzz_bytes(in, m, size);
    if (from & 1) { /* half of the messages have plausible values; the agreement drops most others at once */
        m->kind &= 1;
        m->decided &= 1;
        m->epoch %= agreement->n;
    }
    agree_receive(agreement, from / 2, m, out);
    free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint64_t words[WORDS_MAX], decision[WORDS_MAX];
    const uint32_t n = 1 + fuzz_u8(&in) % MEMBERS_MAX, me = fuzz_u8(&in) % n,
                   nwords = 1 + fuzz_u8(&in) % WORDS_MAX;
    agreement = malloc(agree_size(n, nwords));
    agree_init(agreement, n, me, nwords);
    struct agree_out out = {.send = check_sent_message, .scratch = malloc(agree_message_size(agreement))};
    bool decided = false;
    memset(words, 0x5a, sizeof(words));
    for (int i = 0; i < STEPS_MAX && in.left > 0; i++) {
        const uint8_t what = fuzz_u8(&in);
        if (what % 4 == 0)
            agree_member_died(agreement, fuzz_u8(&in), &out);
        else if (what % 4 == 1 && !agreement->begun)
            agree_begin(agreement, words, &out);
        else
            receive_random_message(&in, &out);
        if (decided)
            FUZZ_CHECK(memcmp(decision, agree_get_result(agreement), nwords * sizeof(uint64_t)) == 0);
        decided = agreement->decided;
        memcpy(decision, agree_get_result(agreement), nwords * sizeof(uint64_t));
    }
    free(out.scratch);
    free(agreement);
    return 0;
}
