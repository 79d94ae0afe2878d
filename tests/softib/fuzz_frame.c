/* fuzz_frame.c: decodes random bytes and valid frames with changed bytes: an accepted frame is consistent
 * and encodes to the same bytes, and the decoder never reads outside the buffer. A fixed number of seeded
 * rounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/frame.h"
#include "hca/responder.h"
#include <stdio.h>
#include <stdlib.h>

static uint64_t rng = 88172645463325252ull;

static uint32_t random_bits(void)
{
    return (uint32_t)(rng_next(&rng) >> 32);
}

static struct frame random_frame(void)
{
    static const uint8_t ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                  IBV_WR_ATOMIC_FETCH_AND_ADD, 200};
    static const uint8_t kinds[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, 77};
    uint32_t total = random_bits() % 3 ? random_bits() % 4000 : random_bits(),
             length = random_bits() % 4 ? total : random_bits();
    return (struct frame){.type = (uint8_t)(random_bits() % (FRAME_TYPES + 1)),
                          .flags = (uint8_t)random_bits(),
                          .opcode = ops[random_bits() % 5],
                          .sl = (uint8_t)random_bits(),
                          .qp_type = kinds[random_bits() % 4],
                          .dst_qpn = random_bits() >> (random_bits() % 12),
                          .src_qpn = random_bits() >> (random_bits() % 12),
                          .seq = random_bits() >> (random_bits() % 12),
                          .length = length,
                          .total = total,
                          .offset = random_bits() % 3 ? 0 : random_bits(),
                          .rkey = random_bits(),
                          .imm = random_bits(),
                          .arg = random_bits() % 8,
                          .raddr = (uint64_t)random_bits() << 32 | random_bits(),
                          .slid = (uint16_t)random_bits(),
                          .dlid = (uint16_t)random_bits()};
}

static void check_decoded_frame(const uint8_t *bytes, uint32_t fabric)
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
        uint8_t *exact = malloc(FRAME_BYTES); /* the address sanitizer detects a read past its end */
        struct frame f = random_frame(), out;
        uint32_t fabric = random_bits() % 4;
        frame_encode(&f, fabric, exact);
        accepted += frame_decode(exact, fabric, &out);
        check_decoded_frame(exact, fabric);
        if (frame_decode(exact, fabric + 1, &out)) {
            printf("FAILED: accepted a frame of another fabric\n");
            return 1;
        }
        exact[random_bits() % FRAME_BYTES] ^= (uint8_t)(1u << random_bits() % 8);
        if (frame_decode(exact, fabric, &out)) {
            printf("FAILED: accepted a frame with a flipped bit\n");
            return 1;
        }
        for (unsigned k = 0; k < FRAME_BYTES; k++)
            exact[k] = (uint8_t)random_bits();
        check_decoded_frame(exact, fabric);
        free(exact);
    }
    printf("400000 rounds, %u frames accepted\n", accepted);
    return accepted ? 0 : 1;
}
