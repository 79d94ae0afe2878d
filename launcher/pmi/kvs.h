/* kvs.h: the key-value store of the PMI server: text to text, kept until the job ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_KVS_H
#define FP_LAUNCHER_KVS_H

#include <stdbool.h>
#include <stddef.h>

struct kvs_entry {
    struct kvs_entry *next;
    char *key, *value;
};

struct kvs {
    struct kvs_entry **bucket;
    size_t nbuckets, n;
};

/* Replaces an existing value. */
void kvs_put(struct kvs *s, const char *key, const char *value);
const char *kvs_get(const struct kvs *s, const char *key);
bool kvs_remove(struct kvs *s, const char *key);
void kvs_free(struct kvs *s);

#endif
