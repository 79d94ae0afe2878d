/* pack.c: encodes and decodes numbers and strings of messages between hosts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plan/pack.h"

#include <arpa/inet.h>
#include <string.h>

void pack_u32(struct buf *out, uint32_t v)
{
    v = htonl(v);
    buf_add(out, &v, sizeof(v));
}

void pack_str(struct buf *out, const char *s)
{
    uint32_t len = (uint32_t)strlen(s);
    pack_u32(out, len);
    buf_add(out, s, len);
}

void pack_list(struct buf *out, char *const *list)
{
    uint32_t n = 0;
    while (list[n])
        n++;
    pack_u32(out, n);
    for (uint32_t i = 0; i < n; i++)
        pack_str(out, list[i]);
}

uint32_t unpack_u32(struct unpack *r)
{
    uint32_t v = 0;
    if (r->bad || r->left < sizeof(v)) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->at, sizeof(v));
    r->at += sizeof(v);
    r->left -= sizeof(v);
    return ntohl(v);
}

char *unpack_str(struct unpack *r)
{
    uint32_t len = unpack_u32(r);
    if (r->bad || len > r->left || memchr(r->at, 0, len)) {
        r->bad = true;
        return xstrdup("");
    }
    char *s = xcalloc(len + 1, 1);
    memcpy(s, r->at, len);
    r->at += len;
    r->left -= len;
    return s;
}

uint32_t unpack_count(struct unpack *r, size_t least)
{
    uint32_t n = unpack_u32(r);
    if (n > r->left / least)
        r->bad = true;
    return r->bad ? 0 : n;
}

char **unpack_list(struct unpack *r)
{
    uint32_t n = unpack_count(r, 4);
    char **list = xcalloc((size_t)n + 1, sizeof(*list));
    for (uint32_t i = 0; i < n; i++)
        list[i] = unpack_str(r);
    return list;
}
