/* softib.c: fuzzes softib's frame header and the text that describes a fabric. tests/softib/fuzz_wire.c
 * fuzzes frames on sockets, fuzz_post.c posted requests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"
#include "net/frame.h"
#include "fuzz.h"

static void fuzz_header(const uint8_t *data)
{
    struct frame f;
    uint8_t again[FRAME_BYTES];
    uint32_t fabric = 7;
    if (!frame_decode(data, fabric, &f))
        return;
    FUZZ_CHECK(f.type >= 1 && f.type < FRAME_TYPES && f.length <= FRAME_SEGMENT);
    FUZZ_CHECK(f.length <= f.total && f.offset <= f.total - f.length);
    frame_encode(&f, fabric, again);
    FUZZ_CHECK(memcmp(data, again, FRAME_BYTES) == 0);
}

static void fuzz_fabric_text(const uint8_t *data, size_t size)
{
    struct fabric f;
    char err[256] = "", *text = fuzz_text(data, size);
    if (fabric_parse(text, &f, err, sizeof(err))) {
        FUZZ_CHECK(f.nports == f.nodes * f.hcas * f.ports && f.nports >= 1);
        fabric_free(&f);
    } else {
        FUZZ_CHECK(*err);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= FRAME_BYTES) {
        uint8_t *copy = malloc(FRAME_BYTES);
        memcpy(copy, data, FRAME_BYTES);
        fuzz_header(copy);
        free(copy);
    }
    fuzz_fabric_text(data, size);
    return 0;
}
