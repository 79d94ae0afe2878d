/* info.c: info objects as ordered arrays of strings with linear search, since they have few keys.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/info.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int info_create(struct info **out)
{
    struct info *i = objmem_new(sizeof(*i));
    if (!i)
        return err_set(MPI_ERR_NO_MEM, "out of memory for an info object");
    i->obj = object_init(MAGIC_INFO);
    *out = i;
    return MPI_SUCCESS;
}

void info_release(struct info *i)
{
    if (!i || --i->obj.refs > 0)
        return;
    for (int k = 0; k < i->count; k++) {
        free(i->pairs[k].key);
        free(i->pairs[k].value);
    }
    free(i->pairs);
    i->obj.magic = MAGIC_FREED;
    objmem_free(i);
}

static struct info_pair *info_find_pair(const struct info *i, const char *key)
{
    for (int k = 0; k < i->count; k++)
        if (strcmp(i->pairs[k].key, key) == 0)
            return &i->pairs[k];
    return NULL;
}

static int no_memory(void)
{
    return err_set(MPI_ERR_NO_MEM, "out of memory for an info object");
}

static int info_append_pair(struct info *i, const char *key, const char *value)
{
    if (i->count == i->capacity) {
        int capacity = i->capacity ? 2 * i->capacity : 4;
        struct info_pair *pairs = realloc(i->pairs, (size_t)capacity * sizeof(*pairs));
        if (!pairs)
            return no_memory();
        i->pairs = pairs;
        i->capacity = capacity;
    }
    struct info_pair pair = {strdup(key), strdup(value)};
    if (!pair.key || !pair.value) {
        free(pair.key);
        free(pair.value);
        return no_memory();
    }
    i->pairs[i->count++] = pair;
    return MPI_SUCCESS;
}

int info_set(struct info *i, const char *key, const char *value)
{
    size_t key_len = strlen(key), value_len = strlen(value);
    if (key_len == 0 || key_len >= MPI_MAX_INFO_KEY)
        return err_set(MPI_ERR_INFO_KEY, "a key has 1 to %d characters, not %zu", MPI_MAX_INFO_KEY - 1,
                       key_len);
    if (value_len >= MPI_MAX_INFO_VAL)
        return err_set(MPI_ERR_INFO_VALUE, "the value of '%s' has %zu characters; %d are allowed", key,
                       value_len, MPI_MAX_INFO_VAL - 1);
    struct info_pair *pair = info_find_pair(i, key);
    if (!pair)
        return info_append_pair(i, key, value);
    char *copy = strdup(value);
    if (!copy)
        return no_memory();
    free(pair->value);
    pair->value = copy;
    return MPI_SUCCESS;
}

int info_delete(struct info *i, const char *key)
{
    struct info_pair *pair = info_find_pair(i, key);
    if (!pair)
        return err_set(MPI_ERR_INFO_NOKEY, "the info object has no key '%.*s'", MPI_MAX_INFO_KEY, key);
    free(pair->key);
    free(pair->value);
    int index = (int)(pair - i->pairs);
    memmove(pair, pair + 1, (size_t)(i->count - index - 1) * sizeof(*pair));
    i->count--;
    return MPI_SUCCESS;
}

int info_copy(const struct info *from, struct info **out)
{
    struct info *copy;
    int rc = info_create(&copy);
    if (rc)
        return rc;
    for (int k = 0; k < from->count && !rc; k++)
        rc = info_append_pair(copy, from->pairs[k].key, from->pairs[k].value);
    if (rc) {
        info_release(copy);
        return rc;
    }
    *out = copy;
    return MPI_SUCCESS;
}

const char *info_get(const struct info *i, const char *key)
{
    struct info_pair *pair = info_find_pair(i, key);
    return pair ? pair->value : NULL;
}

bool info_get_bool(const struct info *i, const char *key, bool otherwise)
{
    const char *value = i ? info_get(i, key) : NULL;
    return value ? strcasecmp(value, "true") == 0 : otherwise;
}
