/* request.c: collects the answers of the rails, and selects granted rails after the last answer or a timeout
 * (request.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/rails/request.h"

void request_begin(struct request *r, uint32_t number, uint32_t rails)
{
    *r = (struct request){.number = number, .waiting = rails};
}

/* Called when all rails have answered or the request has timed out: selects rails among the granted ones. */
static struct request_out request_decide(struct request *r, struct alloc *a)
{
    struct request_out out = {.verdict = REQUEST_RETRY, .abort = r->waiting};
    if (r->granted) {
        out.verdict = REQUEST_SEND;
        out.send = alloc_select(a, r->granted);
        out.abort |= r->granted & ~out.send;
    }
    *r = (struct request){0};
    return out;
}

struct request_out request_answer(struct request *r, struct alloc *a, uint32_t number, unsigned rail,
                                  bool granted)
{
    if (r->number == 0 || r->number != number || !rail_set_contains(r->waiting, rail))
        return (struct request_out){.verdict = REQUEST_IGNORED};
    r->waiting &= ~rail_bit(rail);
    if (granted)
        r->granted |= rail_bit(rail);
    if (r->waiting)
        return (struct request_out){.verdict = REQUEST_WAIT};
    return request_decide(r, a);
}

struct request_out request_timeout(struct request *r, struct alloc *a)
{
    if (r->number == 0)
        return (struct request_out){.verdict = REQUEST_IGNORED};
    return request_decide(r, a);
}
