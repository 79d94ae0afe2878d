/* link.c: fuzzes the bytes that arrive at mpiexec or an agent: framing, messages of the handshake, seals
 * of frames, the plan, the tree. Accepted data must encode to the bytes that it was read from.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "launcher/remote/link.h"

#include "fuzz.h"
#include "launcher/plan/plan.h"
#include "launcher/remote/tree.h"

static void expect_equal_bytes(struct buf *again, const char *data, size_t len)
{
    FUZZ_CHECK(buf_size(again) <= len && memcmp(buf_head(again), data, buf_size(again)) == 0);
    buf_free(again);
}

static void fuzz_greeting(const struct frame_head *h, const char *data)
{
    struct hello hello;
    struct challenge challenge;
    struct buf again = {0};
    if (h->type == FRAME_HELLO && proof_hello_decode(data, h->len, &hello)) {
        FUZZ_CHECK(strlen(hello.who) < WHO_MAX && strlen(hello.version) < VERSION_MAX);
        proof_hello_encode(&hello, &again);
        expect_equal_bytes(&again, data, h->len);
    } else if (h->type == FRAME_CHALLENGE && proof_challenge_decode(data, h->len, &challenge)) {
        proof_challenge_encode(&challenge, &again);
        expect_equal_bytes(&again, data, h->len);
    }
}

static void fuzz_contents(const struct frame_head *h, const char *data)
{
    struct buf again = {0};
    uint32_t value;
    fuzz_greeting(h, data);
    link_read_u32(data, h->len, &value);
    struct plan *plan = plan_decode(data, h->len);
    if (plan) {
        /* Compared by contents, not by bytes: decoding changes every non-zero flag to 1. */
        plan_encode(plan, &again);
        struct plan *second = plan_decode(buf_head(&again), buf_size(&again));
        FUZZ_CHECK(second != NULL && second->nranks == plan->nranks && second->napps == plan->napps);
        plan_free(second);
        buf_free(&again);
        plan_free(plan);
    }
    struct tree_spec *spec = tree_decode(data, h->len);
    tree_free(spec);
}

/* With seals a frame that was made without the key is rejected. */
static void check_seal(const struct frame_head *h, const char *frame, size_t size)
{
    static const uint8_t key[SHA256_SIZE] = "a key that no input knows";
    struct seal seal;
    seal_init(&seal, key);
    if (size >= FRAME_HEADER + h->len + SEAL_SIZE)
        FUZZ_CHECK(!seal_check(&seal, frame, FRAME_HEADER, frame + FRAME_HEADER, h->len,
                               frame + FRAME_HEADER + h->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    size_t max = fuzz_u8(&in) & 1 ? GREETING_MAX : 64u << 20, len, at = 0;
    char *bytes = fuzz_copy(&in, in.left, &len);
    struct frame_head h;
    while (link_parse(bytes + at, len - at, max, &h) == LINK_FRAME) {
        FUZZ_CHECK(h.type >= FRAME_HELLO && h.type <= FRAME_LAST && h.len <= max);
        FUZZ_CHECK(h.len <= len - at - FRAME_HEADER);
        fuzz_contents(&h, bytes + at + FRAME_HEADER);
        check_seal(&h, bytes + at, len - at);
        at += FRAME_HEADER + h.len;
    }
    /* Decodes the input as the contents of one frame too, so that the fuzzer need not guess a length
     * first. */
    h = (struct frame_head){FRAME_HELLO, 0, 0, len};
    fuzz_contents(&h, bytes);
    h.type = FRAME_CHALLENGE;
    fuzz_greeting(&h, bytes);
    free(bytes);
    return 0;
}
