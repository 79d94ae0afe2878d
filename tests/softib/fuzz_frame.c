/* fuzz_frame.c: the frame decoder against random bytes and against good frames with bytes changed: what it
 * accepts is consistent and encodes back to the same bytes; nothing it rejects or accepts makes it read
 * outside. A fixed number of seeded rounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/frame.h"
#include "hca/responder.h"
#include <stdio.h>
#include <stdlib.h>

static uint64_t rng = 88172645463325252ull;

static uint32_t frame_random(void)
{
    return (uint32_t)(rng_next(&rng) >> 32);
}

static struct frame random_frame(void)
{
    static const uint8_t ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                  IBV_WR_ATOMIC_FETCH_AND_ADD, 200};
    static const uint8_t kinds[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, 77};
    uint32_t total = frame_random() % 3 ? frame_random() % 4000 : frame_random(),
             length = frame_random() % 4 ? total : frame_random();
    return (struct frame){.type = (uint8_t)(frame_random() % (FRAME_TYPES + 1)),
                          .flags = (uint8_t)frame_random(),
                          .opcode = ops[frame_random() % 5],
                          .sl = (uint8_t)frame_random(),
                          .qp_type = kinds[frame_random() % 4],
                          .dst_qpn = frame_random() >> (frame_random() % 12),
                          .src_qpn = frame_random() >> (frame_random() % 12),
                          .seq = frame_random() >> (frame_random() % 12),
                          .length = length,
                          .total = total,
                          .offset = frame_random() % 3 ? 0 : frame_random(),
                          .rkey = frame_random(),
                          .imm = frame_random(),
                          .arg = frame_random() % 8,
                          .raddr = (uint64_t)frame_random() << 32 | frame_random(),
                          .slid = (uint16_t)frame_random(),
                          .dlid = (uint16_t)frame_random()};
}

static void frame_check(const uint8_t *bytes, uint32_t fabric)
{
    struct frame f;
    uint8_t again[FRAME_BYTES];
    if (!frame_decode(bytes, fabric, &f))
        return;
    frame_encode(&f, fabric, again);
    bool same = !memcmp(bytes, again, FRAME_BYTES);
    bool inside = f.length <= f.total && f.offset <= f.total - f.length && f.total <= MAX_MSG &&
                  f.seq <= 0xffffff && f.length <= FRAME_SEGMENT && f.type >= 1 && f.type < FRAME_TYPES;
    if (!same || !inside) {
        printf("FAILED: accepted a frame of type %u, length %u, offset %u, total %u\n", f.type, f.length,
               f.offset, f.total);
        exit(1);
    }
}

int main(void)
{
    unsigned accepted = 0;
    for (unsigned i = 0; i < 400000; i++) {
        uint8_t *exact = malloc(FRAME_BYTES); /* a read beyond it is seen by the address sanitizer */
        struct frame f = random_frame(), out;
        uint32_t fabric = frame_random() % 4;
        frame_encode(&f, fabric, exact);
        accepted += frame_decode(exact, fabric, &out);
        frame_check(exact, fabric);
        if (frame_decode(exact, fabric + 1, &out)) {
            printf("FAILED: accepted a frame of another fabric\n");
            return 1;
        }
        exact[frame_random() % FRAME_BYTES] ^= (uint8_t)(1u << frame_random() % 8);
        if (frame_decode(exact, fabric, &out)) {
            printf("FAILED: accepted a frame with a flipped bit\n");
            return 1;
        }
        for (unsigned k = 0; k < FRAME_BYTES; k++)
            exact[k] = (uint8_t)frame_random();
        frame_check(exact, fabric);
        free(exact);
    }
    printf("400000 rounds, %u good frames among them\n", accepted);
    return accepted ? 0 : 1;
}
