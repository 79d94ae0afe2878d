/* verdict.c: creates, checks and decodes the messages between the roots of two groups (verdict.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dyn/verdict.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define TAG_MASK 0x3fffffff

struct verdict verdict_from_error(int error)
{
    struct verdict v = {.error = error};
    if (error)
        snprintf(v.sentence, sizeof(v.sentence), "%s", err_detail(error));
    return v;
}

int verdict_error(const struct verdict *v)
{
    return v->error ? err_set(v->error, "%.*s", VERDICT_SENTENCE - 1, v->sentence) : 0;
}

static bool is_valid(const struct verdict *v, size_t len, bool with_group)
{
    if (len != sizeof(*v) + (uint64_t)v->count * sizeof(struct net_card))
        return false;
    if (v->error != 0)
        return v->error > 0 && v->error <= MPI_ERR_LASTCODE;
    return with_group ? v->root >= 0 && (uint32_t)v->root < v->count : v->count == 0;
}

int verdict_decode(const void *bytes, size_t len, bool with_group, struct verdict *out,
                   const struct net_card **cards)
{
    if (len >= sizeof(*out))
        memcpy(out, bytes, sizeof(*out));
    if (len < sizeof(*out) || !is_valid(out, len, with_group))
        return err_set(MPI_ERR_PORT,
                       "the other side of the connection uses a different version of Fishplate");
    out->sentence[VERDICT_SENTENCE - 1] = '\0';
    out->tag &= TAG_MASK;
    *cards = (const void *)((const char *)bytes + sizeof(*out));
    return verdict_error(out);
}
