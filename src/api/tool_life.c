/* tool_life.c: start and end of the tool information interface, its lock, its strings and its enumerations,
 * and the callbacks by which it observes messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>

#include "api/enter.h"
#include "api/init.h"
#include "api/tool.h"
#include "impl.h"
#include "obj/proc.h"

/* Recursive: an event's callback may read the event's data. Locked after the process's lock, never before. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int users;
static bool layers_opened;

int api_enter_tool(void)
{
    pthread_mutex_lock(&lock);
    if (users > 0)
        return 0;
    pthread_mutex_unlock(&lock);
    return MPI_T_ERR_NOT_INITIALIZED;
}

void api_leave_tool(void)
{
    pthread_mutex_unlock(&lock);
}

int impl_T_init_thread(int required, int *provided)
{
    pthread_mutex_lock(&lock);
    /* Control variables show the environment's values, also before MPI_Init. */
    if (users++ == 0 && !layers_opened)
        tunables_load();
    TOOL_OUT(provided, api_thread_level(required));
    pthread_mutex_unlock(&lock);
    return 0;
}

int impl_T_finalize(void)
{
    if (--users == 0) {
        tool_pvars_close();
        tool_events_close();
        tool_watch_update();
    }
    return 0;
}

bool tool_has_magic(const void *handle, enum tool_magic magic)
{
    return !handle_is_predefined(handle) && *(const uint32_t *)handle == magic;
}

void tool_string(const char *text, char *out, int *len)
{
    if (!len)
        return;
    if (out && *len > 0) {
        size_t n = MIN(strlen(text), (size_t)*len - 1);
        memcpy(out, text, n);
        out[n] = '\0';
    }
    *len = (int)strlen(text) + 1;
}

/* Returns word number `item` of "a|b|c"; NULL when there are fewer. */
static const char *get_enum_item(const char *items, int item, char *out, size_t size)
{
    for (; item > 0; item--) {
        items = strchr(items, '|');
        if (!items)
            return NULL;
        items++;
    }
    size_t n = MIN(strcspn(items, "|"), size - 1);
    memcpy(out, items, n);
    out[n] = '\0';
    return out;
}

int impl_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    const struct tool_enum *e = (const struct tool_enum *)enumtype;
    if (!tool_has_magic(e, TOOL_ENUM))
        return MPI_T_ERR_INVALID_HANDLE;
    int n = 1;
    for (const char *p = e->items; (p = strchr(p, '|')); p++)
        n++;
    TOOL_OUT(num, n);
    tool_string(e->name, name, name_len);
    return 0;
}

int impl_T_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    const struct tool_enum *e = (const struct tool_enum *)enumtype;
    char word[64];
    if (!tool_has_magic(e, TOOL_ENUM))
        return MPI_T_ERR_INVALID_HANDLE;
    if (indx < 0 || !get_enum_item(e->items, indx, word, sizeof(word)))
        return MPI_T_ERR_INVALID_ITEM;
    TOOL_OUT(value, indx);
    tool_string(word, name, name_len);
    return 0;
}

static void tool_message_arrived(struct p2p *p, const struct p2p_arrival *a)
{
    pthread_mutex_lock(&lock);
    tool_pvars_arrived(a);
    tool_event_arrived(a);
    pthread_mutex_unlock(&lock);
}

static void tool_message_delivered(struct p2p *p)
{
    pthread_mutex_lock(&lock);
    tool_pvars_delivered(p);
    pthread_mutex_unlock(&lock);
}

static void tool_protocol_chosen(struct p2p *p, struct envelope env, uint64_t length,
                                 enum p2p_protocol protocol)
{
    pthread_mutex_lock(&lock);
    tool_event_chosen(env, length, protocol);
    pthread_mutex_unlock(&lock);
}

void tool_watch_update(void)
{
    static const struct p2p_watch watch = {
        .arrived = tool_message_arrived, .delivered = tool_message_delivered, .chose = tool_protocol_chosen};
    if (the_proc)
        p2p_set_watch(the_proc->p2p, tool_pvars_watch() || tool_events_watch() ? &watch : NULL);
}

void tool_attach(struct proc *p)
{
    pthread_mutex_lock(&lock);
    layers_opened = true;
    tool_watch_update();
    pthread_mutex_unlock(&lock);
}

bool tool_layers_opened(void)
{
    return layers_opened;
}

int tool_info_new(MPI_Info *out)
{
    struct info *i;
    if (!out)
        return 0;
    if (info_create(&i) != 0)
        return MPI_T_ERR_MEMORY;
    *out = info_handle(i);
    return 0;
}
