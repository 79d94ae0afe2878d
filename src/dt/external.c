/* external.c: converts values between memory and external32 one by one. Most types differ in byte order
 * only; a long or a wide character is narrower in external32, and an x87 long double has another format.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/external.h"

#include <string.h>
#include <wchar.h>

#include "dt/build.h"
#include "dt/kind.h"
#include "dt/number.h"
#include "dt/walk.h"

MPI_Count dt_external_size(const struct dtype *t, MPI_Count count)
{
    if (t->size == 0)
        return 0;
    if (!t->shape)
        return count * dt_kinds[t->kind].external;
    MPI_Count sum = 0;
    for (MPI_Count i = 0; i < t->shape->count; i++)
        sum += dt_external_size(t->shape->part[i].type, t->shape->part[i].count);
    return count * t->shape->repeat * sum;
}

/* Copies n bytes in reverse order on little-endian machines: external32 stores the most significant byte
 * first. */
static void external_swap_bytes(char *to, const char *from, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    memcpy(to, from, n);
#else
    for (size_t i = 0; i < n; i++)
        to[i] = from[n - 1 - i];
#endif
}

/* Converts integers to a narrower external32 form. */
static int external_shrink_int(char *to, size_t narrow, const char *from, size_t wide, bool is_signed)
{
    int64_t value = 0;
    uint64_t bits = 0;
    char native[16];
    external_swap_bytes(native, from, wide);
    for (size_t i = 0; i < wide; i++)
        bits = bits << 8 | (unsigned char)native[i];
    value = wide == 4 && is_signed ? (int32_t)bits : (int64_t)bits;
    int64_t limit = (int64_t)1 << (8 * narrow - 1);
    bool fits = is_signed ? value >= -limit && value < limit : bits < 2 * (uint64_t)limit;
    memcpy(to, native + wide - narrow, narrow);
    return fits ? 0
                : err_set(MPI_ERR_CONVERSION, "a value does not fit the %zu bytes it has in external32",
                          narrow);
}

static void external_widen_int(char *to, size_t wide, const char *from, size_t narrow, bool is_signed)
{
    char outside[16];
    memset(outside, is_signed && (from[0] & 0x80) ? 0xff : 0, sizeof(outside));
    memcpy(outside + wide - narrow, from, narrow);
    external_swap_bytes(to, outside, wide);
}

static bool is_signed_kind(const struct dt_kind_info *k)
{
    return k->num >= NUM_I8 && k->num <= NUM_I128;
}

#if NUM_HAVE_F128 && LDBL_MANT_DIG == 64
static void long_double_encode(char *to, const char *from)
{
    long double native;
    memcpy(&native, from, sizeof(native));
    num_f128 quad = native;
    external_swap_bytes(to, (const char *)&quad, sizeof(quad));
}

static void long_double_decode(char *to, const char *from)
{
    num_f128 quad;
    external_swap_bytes((char *)&quad, from, sizeof(quad));
    long double native = (long double)quad;
    memcpy(to, &native, sizeof(native));
}
#else
static void long_double_encode(char *to, const char *from)
{
    external_swap_bytes(to, from, sizeof(long double));
}

static void long_double_decode(char *to, const char *from)
{
    external_swap_bytes(to, from, sizeof(long double));
}
#endif

static int external_count_halves(const struct dt_kind_info *k)
{
    return k->num >= NUM_C16 && k->num <= NUM_C128 ? 2 : 1;
}

struct conversion {
    char *outside;   /* next byte of the external32 data */
    uint64_t left;   /* bytes behind `outside` */
    MPI_Count bytes; /* bytes of memory converted so far */
    bool decodes;
    int rc; /* error class of the first value that does not fit */
};

/* Converts one value, or one half of a complex number, of `inner` bytes in memory and `outer` bytes in
 * external32. */
static void convert_value(struct conversion *c, const struct dt_kind_info *k, char *at, size_t inner,
                          size_t outer)
{
    const bool extended = k->num == NUM_FL || k->num == NUM_CL;
    int rc = 0;
    if (extended && c->decodes)
        long_double_decode(at, c->outside);
    else if (extended)
        long_double_encode(c->outside, at);
    else if (inner == outer && c->decodes)
        external_swap_bytes(at, c->outside, inner);
    else if (inner == outer)
        external_swap_bytes(c->outside, at, inner);
    else if (c->decodes)
        external_widen_int(at, inner, c->outside, outer, is_signed_kind(k));
    else
        rc = external_shrink_int(c->outside, outer, at, inner, is_signed_kind(k));
    c->rc = c->rc ? c->rc : rc;
}

/* Converts the elements that are complete in external32; stops the walk behind the last one. */
static int visit_convert(void *context, struct dtype *basic, MPI_Count count, char *at)
{
    struct conversion *c = context;
    const struct dt_kind_info *k = &dt_kinds[basic->kind];
    const MPI_Count n = external_count_halves(k);
    const size_t inner = (size_t)(basic->size / n), outer = k->external / (size_t)n;
    const uint64_t whole = MIN((uint64_t)count, c->left / k->external);
    if (inner == 1 && outer == 1) { /* single bytes need no swap */
        memcpy(c->decodes ? at : c->outside, c->decodes ? c->outside : at, whole * (uint64_t)n);
        c->outside += whole * (uint64_t)n;
    } else {
        for (uint64_t i = 0; i < whole * (uint64_t)n; i++, at += inner, c->outside += outer)
            convert_value(c, k, at, inner, outer);
    }
    c->left -= whole * k->external;
    c->bytes += (MPI_Count)whole * basic->size;
    return whole < (uint64_t)count;
}

int dt_external_pack(struct dtype *t, MPI_Count count, const void *buffer, void *out)
{
    struct conversion c = {.outside = out, .left = UINT64_MAX};
    dt_walk(t, count, (void *)buffer, WALK_BASIC, visit_convert, &c);
    return c.rc;
}

MPI_Count dt_external_unpack(struct dtype *t, MPI_Count count, void *buffer, const void *in, uint64_t len)
{
    struct conversion c = {.outside = (char *)in, .left = len, .decodes = true};
    dt_walk(t, count, buffer, WALK_BASIC, visit_convert, &c);
    return c.bytes;
}
