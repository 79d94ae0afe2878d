/* hash.h: FNV-1a, for numbers that stand for the names of jobs and machines. It is not a cryptographic hash.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_HASH_H
#define FP_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325ull

static inline uint64_t hash_add(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    return hash;
}

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_add(hash, text, strlen(text));
}

/* 31 bits of the hash, as a number that is not negative. */
static inline int32_t hash_positive(uint64_t hash)
{
    return (int32_t)((hash ^ hash >> 31) & 0x7fffffff);
}

#endif
