/* chunk.c: encodes a value as its length and base64. The decoder checks each character and the final length:
 * the server may have damaged the text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "boot/chunk.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t base64_len(size_t len)
{
    return len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);
}

char *chunk_encode(const void *val, size_t len, size_t *text_len)
{
    char head[32];
    int head_len = snprintf(head, sizeof(head), "%zu.", len);
    char *text = malloc((size_t)head_len + base64_len(len) + 1);
    if (!text)
        return NULL;
    memcpy(text, head, (size_t)head_len);
    char *out = text + head_len;
    const unsigned char *in = val;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)in[i] << 16;
        bits |= n > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        bits |= n > 2 ? in[i + 2] : 0;
        for (size_t k = 0; k <= n; k++)
            *out++ = alphabet[bits >> (18 - 6 * k) & 63];
    }
    *out = '\0';
    *text_len = (size_t)(out - text);
    return text;
}

/* Parses "<digits>." at the start of the text: the length of the value, and the offset of the base64. */
static bool read_head(const char *text, size_t *len, size_t *head_len)
{
    size_t v = 0, i = 0;
    for (; text[i] >= '0' && text[i] <= '9'; i++) {
        v = v * 10 + (size_t)(text[i] - '0');
        if (v > CHUNK_VALUE_MAX)
            return false;
    }
    if (i == 0 || text[i] != '.')
        return false;
    *len = v;
    *head_len = i + 1;
    return true;
}

bool chunk_text_len(const char *first, size_t *text_len)
{
    size_t len, head;
    if (!read_head(first, &len, &head))
        return false;
    *text_len = head + base64_len(len);
    return true;
}

static int chunk_digit_value(char c)
{
    const char *p = c ? strchr(alphabet, c) : NULL;
    return p ? (int)(p - alphabet) : -1;
}

static bool decode_base64(const char *text, size_t len, unsigned char *out)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k <= n; k++) {
            int d = chunk_digit_value(*text++);
            if (d < 0)
                return false;
            bits |= (uint32_t)d << (18 - 6 * k);
        }
        for (size_t k = 0; k < n; k++)
            out[i + k] = (unsigned char)(bits >> (16 - 8 * k));
    }
    return true;
}

bool chunk_decode(const char *text, size_t text_len, void **val, size_t *len)
{
    size_t n, head;
    if (memchr(text, 0, text_len) || !read_head(text, &n, &head) || text_len != head + base64_len(n))
        return false;
    unsigned char *out = malloc(n + 1);
    if (!out)
        return false;
    if (!decode_base64(text + head, n, out)) {
        free(out);
        return false;
    }
    out[n] = 0;
    *val = out;
    *len = n;
    return true;
}
