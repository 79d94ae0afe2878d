/* tool_cvar.c: control variables: every tunable is one. Most are read once, when the layers open, and can be
 * set until then; those in the table below are read at each use, and can be set at any time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/tool.h"
#include "base/log.h"
#include "impl.h"
#include "obj/proc.h"

#define TEXT_MAX 1024 /* largest size of a string value, with the final zero */

struct cvar_handle {
    uint32_t magic;
    struct tunable *tunable;
};

static void apply_log_threshold(const struct tunable *t)
{
    log_threshold = (int)t->value;
}

static void apply_check(const struct tunable *t)
{
    if (the_proc)
        the_proc->check_args = t->value != 0;
}

static const struct live {
    const char *name;
    void (*apply)(const struct tunable *t);
} live[] = {{"LOG", apply_log_threshold},
            {"CHECK", apply_check},
            {"RENDEZVOUS", NULL},
            {"SPIN_US", NULL},
            {"YIELDS", NULL},
            {"STATS", NULL},
            {"PARTITION_TOGETHER", NULL}};

static const struct live *find_live_tunable(const struct tunable *t)
{
    for (size_t i = 0; i < COUNT_OF(live); i++)
        if (strcmp(live[i].name, t->name) == 0)
            return &live[i];
    return NULL;
}

static struct tunable *cvar_at(int index)
{
    return index < 0 ? NULL : tunables_get((size_t)index);
}

int tool_cvar_count(void)
{
    return (int)tunables_count();
}

/* The layer of a variable's source file: "p2p" of ".../src/p2p/send.c", "shm" of ".../src/net/shm/shm.c". */
const char *tool_cvar_layer(int index)
{
    static char layer[32];
    const char *file = cvar_at(index)->file, *at = file;
    for (const char *p = file; (p = strstr(p, "src/")); p += 4)
        at = p + 4;
    if (strncmp(at, "net/", 4) == 0 && strchr(at + 4, '/'))
        at += 4;
    size_t n = MIN(strcspn(at, "/"), sizeof(layer) - 1);
    memcpy(layer, at, n);
    layer[n] = '\0';
    return layer;
}

static bool is_wide(const struct tunable *t)
{
    return t->type == TUNABLE_IS_SIZE || t->max > INT_MAX;
}

static MPI_Datatype cvar_type(const struct tunable *t)
{
    if (t->type == TUNABLE_IS_STRING)
        return MPI_CHAR;
    return is_wide(t) ? MPI_UNSIGNED_LONG_LONG : MPI_INT;
}

/* Returns a variable's enumeration, created on first use and never freed: tools may continue to use it. */
static MPI_T_enum cvar_enum(int index)
{
    static struct tool_enum *enums;
    const struct tunable *t = cvar_at(index);
    if (t->type != TUNABLE_IS_BOOL && t->type != TUNABLE_IS_CHOICE)
        return MPI_T_ENUM_NULL;
    if (!enums)
        enums = calloc(tunables_count(), sizeof(*enums));
    if (!enums)
        return MPI_T_ENUM_NULL;
    enums[index] = (struct tool_enum){
        .magic = TOOL_ENUM, .name = t->name, .items = t->type == TUNABLE_IS_BOOL ? "off|on" : t->choices};
    return (MPI_T_enum)&enums[index];
}

static int cvar_verbosity(int index)
{
    const char *layer = tool_cvar_layer(index);
    bool everyone = strcmp(layer, "base") == 0 || strcmp(layer, "obj") == 0 || strcmp(layer, "api") == 0;
    return everyone ? MPI_T_VERBOSITY_USER_BASIC : MPI_T_VERBOSITY_TUNER_BASIC;
}

int impl_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
                         MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
{
    const struct tunable *t = cvar_at(cvar_index);
    if (!t)
        return MPI_T_ERR_INVALID_INDEX;
    tool_string(t->name, name, name_len);
    tool_string(t->doc, desc, desc_len);
    TOOL_OUT(verbosity, cvar_verbosity(cvar_index));
    TOOL_OUT(datatype, cvar_type(t));
    TOOL_OUT(enumtype, cvar_enum(cvar_index));
    TOOL_OUT(bind, MPI_T_BIND_NO_OBJECT);
    TOOL_OUT(scope, find_live_tunable(t) ? MPI_T_SCOPE_LOCAL : MPI_T_SCOPE_ALL_EQ);
    return 0;
}

int impl_T_cvar_get_index(const char *name, int *cvar_index)
{
    for (int i = 0; i < tool_cvar_count(); i++)
        if (strcmp(cvar_at(i)->name, name) == 0) {
            *cvar_index = i;
            return 0;
        }
    return MPI_T_ERR_INVALID_NAME;
}

int impl_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
    struct tunable *t = cvar_at(cvar_index);
    if (!t)
        return MPI_T_ERR_INVALID_INDEX;
    struct cvar_handle *h = malloc(sizeof(*h));
    if (!h)
        return MPI_T_ERR_MEMORY;
    *h = (struct cvar_handle){.magic = TOOL_CVAR, .tunable = t};
    *handle = (MPI_T_cvar_handle)h;
    TOOL_OUT(count, t->type == TUNABLE_IS_STRING ? TEXT_MAX : 1);
    return 0;
}

int impl_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    if (!handle || !tool_has_magic(*handle, TOOL_CVAR))
        return MPI_T_ERR_INVALID_HANDLE;
    struct cvar_handle *h = (struct cvar_handle *)*handle;
    h->magic = 0;
    free(h);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return 0;
}

int impl_T_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    if (!tool_has_magic(handle, TOOL_CVAR))
        return MPI_T_ERR_INVALID_HANDLE;
    const struct tunable *t = ((const struct cvar_handle *)handle)->tunable;
    if (t->type == TUNABLE_IS_STRING) {
        size_t n = MIN(strlen(t->text), (size_t)TEXT_MAX - 1);
        memcpy(buf, t->text, n);
        ((char *)buf)[n] = '\0';
    } else if (is_wide(t)) {
        unsigned long long value = (unsigned long long)t->value;
        memcpy(buf, &value, sizeof(value));
    } else {
        int value = (int)t->value;
        memcpy(buf, &value, sizeof(value));
    }
    return 0;
}

static bool value_fits(const struct tunable *t, int64_t value)
{
    int64_t max = t->max;
    if (t->type == TUNABLE_IS_CHOICE)
        for (const char *p = t->choices; (p = strchr(p, '|')); p++)
            max++;
    return value >= t->min && value <= max;
}

static int cvar_set(struct tunable *t, const void *buf)
{
    int64_t value;
    if (t->type == TUNABLE_IS_STRING) {
        bool ends = memchr(buf, '\0', TEXT_MAX) != NULL;
        return ends && tunable_set(t, buf, SOURCE_PROGRAM) == 0 ? 0 : MPI_T_ERR_INVALID;
    }
    if (is_wide(t)) {
        memcpy(&value, buf, sizeof(value));
    } else {
        int narrow;
        memcpy(&narrow, buf, sizeof(narrow));
        value = narrow;
    }
    if (!value_fits(t, value))
        return MPI_T_ERR_INVALID;
    t->value = value;
    t->source = SOURCE_PROGRAM;
    return 0;
}

int impl_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    if (!tool_has_magic(handle, TOOL_CVAR))
        return MPI_T_ERR_INVALID_HANDLE;
    struct tunable *t = ((struct cvar_handle *)handle)->tunable;
    const struct live *l = find_live_tunable(t);
    if (!l && tool_layers_opened())
        return MPI_T_ERR_CVAR_SET_NEVER;
    int rc = cvar_set(t, buf);
    if (rc == 0 && l && l->apply)
        l->apply(t);
    return rc;
}
