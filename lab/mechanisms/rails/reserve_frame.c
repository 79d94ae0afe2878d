/* reserve_frame.c: encodes and decodes control frames; decoding checks every field (reserve_frame.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/rails/reserve_frame.h"

static void frame_put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t frame_get32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

void frame_encode(const struct frame *f, uint8_t out[FRAME_BYTES])
{
    uint16_t priority = (uint16_t)f->priority;
    out[0] = 'R';
    out[1] = f->kind;
    out[2] = f->rail;
    out[3] = 0;
    frame_put32(out + 4, f->from);
    frame_put32(out + 8, f->to);
    frame_put32(out + 12, f->request);
    out[16] = (uint8_t)priority;
    out[17] = (uint8_t)(priority >> 8);
    out[18] = out[19] = 0;
}

const char *frame_decode(const uint8_t *bytes, size_t size, unsigned rails, uint32_t here, struct frame *out)
{
    if (size != FRAME_BYTES)
        return "a reservation frame of another length";
    if (bytes[0] != 'R' || bytes[3] || bytes[18] || bytes[19])
        return "not a reservation frame";
    int priority = bytes[16] | bytes[17] << 8;
    if (priority > INT16_MAX)
        priority -= 65536;
    struct frame f = {.kind = bytes[1],
                      .rail = bytes[2],
                      .priority = (int16_t)priority,
                      .from = frame_get32(bytes + 4),
                      .to = frame_get32(bytes + 8),
                      .request = frame_get32(bytes + 12)};
    if (f.kind < FRAME_RTS || f.kind > FRAME_DONE)
        return "a reservation frame of an unknown kind";
    if (f.rail >= rails)
        return "a reservation frame for a rail that does not exist";
    if (f.to != here || f.from == here)
        return "a reservation frame for another node";
    if (f.request == 0)
        return "a reservation frame without a request";
    if (priority < -FRAME_PRIORITY_MAX || priority > FRAME_PRIORITY_MAX || (f.kind != FRAME_RTS && priority))
        return "a reservation frame with an impossible priority";
    *out = f;
    return NULL;
}
