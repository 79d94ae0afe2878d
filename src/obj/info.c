/* info.c: info objects as ordered arrays of strings with linear search, since they have few keys.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/tunable.h"
#include "obj/errhandler.h"

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

/* The contents of MPI_INFO_ENV and MPI_Info_create_env: the known parameters with which this process was
 * started. */

/* Sets a value, truncated if it is too long for an info value. */
static int set_truncated(struct info *i, const char *key, const char *value)
{
    char cut[MPI_MAX_INFO_VAL];
    snprintf(cut, sizeof(cut), "%s", value);
    return info_set(i, key, cut);
}

/* The arguments after the command, separated by blanks. */
static int set_arguments(struct info *i, int argc, char **argv)
{
    char text[MPI_MAX_INFO_VAL] = "";
    size_t used = 0;
    for (int k = 1; k < argc && argv[k] && used < sizeof(text); k++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", k > 1 ? " " : "", argv[k]);
    return used ? info_set(i, "argv", text) : MPI_SUCCESS;
}

/* Reads the command line from /proc/self/cmdline if the program passed none to MPI_Init. */
static int set_command_line(struct info *i)
{
    char text[4096];
    char *argv[256];
    int argc = 0;
    FILE *f = fopen("/proc/self/cmdline", "r");
    if (!f)
        return MPI_SUCCESS;
    size_t len = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[len] = '\0';
    for (size_t at = 0; at < len && argc < (int)COUNT_OF(argv); at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    int rc = argc ? set_truncated(i, "command", argv[0]) : MPI_SUCCESS;
    return rc ? rc : set_arguments(i, argc, argv);
}

static int set_machine(struct info *i)
{
    char folder[MPI_MAX_INFO_VAL];
    struct utsname name;
    int rc = MPI_SUCCESS;
    if (uname(&name) == 0)
        rc = set_truncated(i, "arch", name.machine);
    if (!rc && getcwd(folder, sizeof(folder)))
        rc = info_set(i, "wdir", folder);
    return rc;
}

/* Sets keys from the launcher's environment variables, which exist before MPI_Init too. */
static int set_job(struct info *i)
{
    char host[256] = "";
    const char *size = env_get("PMI_SIZE"), *name = env_get("FISHPLATE_HOST");
    int rc = info_set(i, "maxprocs", size ? size : "1");
    if (!name && gethostname(host, sizeof(host) - 1) == 0)
        name = host;
    return rc || !name ? rc : set_truncated(i, "host", name);
}

static int set_errhandler(struct info *i)
{
    char name[64];
    errhandler_open();
    tunable_format(tunables_find("INITIAL_ERRHANDLER"), name, sizeof(name));
    return info_set(i, "mpi_initial_errhandler", name);
}

int info_create_env(int argc, char **argv, struct info **out)
{
    struct info *i;
    int rc = info_create(&i);
    if (rc)
        return rc;
    if (argc > 0 && argv && argv[0]) {
        rc = set_truncated(i, "command", argv[0]);
        if (!rc)
            rc = set_arguments(i, argc, argv);
    } else {
        rc = set_command_line(i);
    }
    if (!rc)
        rc = set_machine(i);
    if (!rc)
        rc = set_job(i);
    if (!rc)
        rc = set_errhandler(i);
    if (rc) {
        info_release(i);
        return rc;
    }
    *out = i;
    return MPI_SUCCESS;
}
