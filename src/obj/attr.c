/* attr.c: keyvals and the sets of attributes behind attr.h. A keyval lives as long as an attribute uses it,
 * also after the user freed it. A user's function runs with the lock dropped and may change the very set that
 * is being walked, so the position of an attribute is looked up again after every such call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/attr.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "obj/attr_table.h"
#include "obj/error.h"
#include "obj/proc.h"

#define KEYVAL_BASE 0x10000 /* above all keyvals that the ABI predefines */

struct keyval {
    enum attr_kind kind;
    int id;
    int refs;   /* number of attributes with this keyval, + 1 until the user frees it */
    bool freed; /* the user called MPI_*_free_keyval */
    void (*copy)(void);
    void (*del)(void);
    void *extra;
};

struct attribute {
    struct keyval *keyval;
    void *value;
    bool deleting; /* the delete function of this attribute is running */
};

struct attr_set {
    int count, capacity;
    struct attribute *list; /* attributes in the order in which they were set */
};

/* The ABI's constants for "no copy", "plain copy" and "no delete function". */
#define NO_FUNCTION   ((uintptr_t)0)
#define COPY_THE_WORD ((uintptr_t)1)

int attr_table_open(struct proc *p)
{
    struct attr_table *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(MPI_ERR_NO_MEM, "out of memory for attributes");
    t->tag_ub = INT_MAX;
    t->host = MPI_PROC_NULL;
    t->io = MPI_ANY_SOURCE;
    t->wtime_is_global = p->boot->nnodes == 1;
    t->appnum = p->boot->appnum;
    t->universe_size = p->boot->universe_size;
    t->ft = p->boot->notices != NULL;
    p->keyvals = t;
    return MPI_SUCCESS;
}

void attr_table_close(struct proc *p)
{
    struct attr_table *t = p->keyvals;
    if (!t)
        return;
    for (int i = 0; i < t->count; i++)
        free(t->keyvals[i]);
    free(t->keyvals);
    free(t);
    p->keyvals = NULL;
}

static struct keyval *keyval_find(struct proc *p, enum attr_kind kind, int id)
{
    struct attr_table *t = p->keyvals;
    int index = id - KEYVAL_BASE;
    if (id < KEYVAL_BASE || index >= t->count || !t->keyvals[index] || t->keyvals[index]->kind != kind)
        return NULL;
    return t->keyvals[index];
}

static int keyval_report_invalid(int id)
{
    static const char *const permanent = "keyval %d belongs to MPI; its attribute cannot be changed";
    if ((id >= MPI_TAG_UB && id <= MPI_WIN_MODEL) || id == MPIX_FT)
        return err_set(MPI_ERR_KEYVAL, permanent, id);
    if (id == MPI_KEYVAL_INVALID)
        return err_set(MPI_ERR_KEYVAL, "the keyval is MPI_KEYVAL_INVALID");
    return err_set(MPI_ERR_KEYVAL, "%d is not a keyval of this kind of object", id);
}

static int table_slot(struct attr_table *t)
{
    for (int i = 0; i < t->count; i++)
        if (!t->keyvals[i])
            return i;
    if (t->count == t->capacity) {
        int capacity = t->capacity ? 2 * t->capacity : 16;
        struct keyval **list = realloc(t->keyvals, (size_t)capacity * sizeof(struct keyval *));
        if (!list)
            return -1;
        t->keyvals = list;
        t->capacity = capacity;
    }
    return t->count++;
}

int attr_keyval_create(struct proc *p, enum attr_kind kind, void (*copy)(void), void (*del)(void),
                       void *extra, int *keyval)
{
    struct keyval *k = calloc(1, sizeof(*k));
    int slot = k ? table_slot(p->keyvals) : -1;
    if (slot < 0) {
        free(k);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a keyval");
    }
    *k = (struct keyval){
        .kind = kind, .id = KEYVAL_BASE + slot, .refs = 1, .copy = copy, .del = del, .extra = extra};
    p->keyvals->keyvals[slot] = k;
    *keyval = k->id;
    return MPI_SUCCESS;
}

static void keyval_release(struct proc *p, struct keyval *k)
{
    if (--k->refs > 0)
        return;
    p->keyvals->keyvals[k->id - KEYVAL_BASE] = NULL;
    free(k);
}

int attr_keyval_free(struct proc *p, enum attr_kind kind, int *keyval)
{
    struct keyval *k = keyval_find(p, kind, *keyval);
    if (!k)
        return keyval_report_invalid(*keyval);
    if (!k->freed) { /* freeing the number twice has no effect while attributes use the keyval */
        k->freed = true;
        keyval_release(p, k);
    }
    *keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

static struct attribute *attr_set_find(struct attr_set *s, const struct keyval *k)
{
    for (int i = 0; s && i < s->count; i++)
        if (s->list[i].keyval == k)
            return &s->list[i];
    return NULL;
}

static void attr_set_remove(struct proc *p, struct attr_set *s, struct attribute *a)
{
    struct keyval *k = a->keyval;
    int index = (int)(a - s->list);
    memmove(a, a + 1, (size_t)(s->count - index - 1) * sizeof(*a));
    s->count--;
    keyval_release(p, k);
}

static int attr_set_append(struct attr_set **set, struct keyval *k, void *value)
{
    struct attr_set *s = *set;
    if (!s)
        s = *set = calloc(1, sizeof(*s));
    if (s && s->count == s->capacity) {
        int capacity = s->capacity ? 2 * s->capacity : 4;
        struct attribute *list = realloc(s->list, (size_t)capacity * sizeof(*list));
        if (list) {
            s->list = list;
            s->capacity = capacity;
        }
    }
    if (!s || s->count == s->capacity)
        return err_set(MPI_ERR_NO_MEM, "out of memory for an attribute");
    k->refs++;
    s->list[s->count++] = (struct attribute){.keyval = k, .value = value};
    return MPI_SUCCESS;
}

/* Calls the user's delete function with the signature of the keyval's kind. */
static int call_delete(const struct keyval *k, void *handle, void *value)
{
    switch (k->kind) {
    case ATTR_COMM:
        return ((MPI_Comm_delete_attr_function *)k->del)((MPI_Comm)handle, k->id, value, k->extra);
    case ATTR_TYPE:
        return ((MPI_Type_delete_attr_function *)k->del)((MPI_Datatype)handle, k->id, value, k->extra);
    default:
        return ((MPI_Win_delete_attr_function *)k->del)((MPI_Win)handle, k->id, value, k->extra);
    }
}

static int call_copy(const struct keyval *k, void *handle, void *value, void **copy, int *flag)
{
    switch (k->kind) {
    case ATTR_COMM:
        return ((MPI_Comm_copy_attr_function *)k->copy)((MPI_Comm)handle, k->id, k->extra, value, copy, flag);
    case ATTR_TYPE:
        return ((MPI_Type_copy_attr_function *)k->copy)((MPI_Datatype)handle, k->id, k->extra, value, copy,
                                                        flag);
    default:
        return ((MPI_Win_copy_attr_function *)k->copy)((MPI_Win)handle, k->id, k->extra, value, copy, flag);
    }
}

/* Runs the delete function of one attribute and then removes it; the function can still read the
 * attribute. */
static int remove_attribute(struct proc *p, void *handle, struct attr_set **set, struct attribute *a)
{
    struct keyval *k = a->keyval;
    if (a->deleting)
        return err_set(MPI_ERR_KEYVAL, "the attribute is being deleted by its delete function");
    if ((uintptr_t)k->del == NO_FUNCTION) {
        attr_set_remove(p, *set, a);
        return MPI_SUCCESS;
    }
    void *value = a->value;
    a->deleting = true;
    k->refs++;
    proc_unlock(p);
    int rc = call_delete(k, handle, value);
    proc_lock(p);
    a = attr_set_find(*set, k);
    if (a)
        a->deleting = false;
    if (a && rc == MPI_SUCCESS)
        attr_set_remove(p, *set, a);
    keyval_release(p, k);
    return rc;
}

int attr_set(struct proc *p, enum attr_kind kind, void *handle, struct attr_set **set, int keyval,
             void *value)
{
    struct keyval *k = keyval_find(p, kind, keyval);
    if (!k)
        return keyval_report_invalid(keyval);
    k->refs++;
    struct attribute *old = attr_set_find(*set, k);
    int rc = old ? remove_attribute(p, handle, set, old) : MPI_SUCCESS;
    if (!rc)
        rc = attr_set_append(set, k, value);
    keyval_release(p, k);
    return rc;
}

static void *attr_predefined_value(struct attr_table *t, int keyval)
{
    switch (keyval) {
    case MPI_TAG_UB:
        return &t->tag_ub;
    case MPI_HOST:
        return &t->host;
    case MPI_IO:
        return &t->io;
    case MPI_WTIME_IS_GLOBAL:
        return &t->wtime_is_global;
    case MPI_APPNUM:
        return t->appnum >= 0 ? &t->appnum : NULL;
    case MPI_UNIVERSE_SIZE:
        return t->universe_size >= 0 ? &t->universe_size : NULL;
    case MPI_LASTUSEDCODE:
        t->last_used_code = error_last_code();
        return &t->last_used_code;
    case MPIX_FT:
        return &t->ft;
    }
    return NULL;
}

int attr_get(struct proc *p, enum attr_kind kind, struct attr_set *set, int keyval, void **value, bool *found)
{
    if (kind == ATTR_COMM && ((keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) || keyval == MPIX_FT)) {
        void *word = attr_predefined_value(p->keyvals, keyval);
        *found = word != NULL;
        if (word)
            *value = word;
        return MPI_SUCCESS;
    }
    struct keyval *k = keyval_find(p, kind, keyval);
    if (!k)
        return keyval_report_invalid(keyval);
    struct attribute *a = attr_set_find(set, k);
    *found = a != NULL;
    if (a)
        *value = a->value;
    return MPI_SUCCESS;
}

int attr_delete(struct proc *p, enum attr_kind kind, void *handle, struct attr_set **set, int keyval)
{
    struct keyval *k = keyval_find(p, kind, keyval);
    if (!k)
        return keyval_report_invalid(keyval);
    struct attribute *a = attr_set_find(*set, k);
    return a ? remove_attribute(p, handle, set, a) : MPI_SUCCESS;
}

static int copy_attribute(struct proc *p, void *handle, const struct attribute *a, struct attr_set **out)
{
    struct keyval *k = a->keyval;
    void *copy = a->value;
    int flag = 1, rc = MPI_SUCCESS;
    if ((uintptr_t)k->copy == NO_FUNCTION)
        return MPI_SUCCESS;
    if ((uintptr_t)k->copy != COPY_THE_WORD) {
        flag = 0;
        k->refs++;
        proc_unlock(p);
        rc = call_copy(k, handle, a->value, &copy, &flag);
        proc_lock(p);
        keyval_release(p, k);
    }
    return rc == MPI_SUCCESS && flag ? attr_set_append(out, k, copy) : rc;
}

int attr_copy_all(struct proc *p, void *handle, struct attr_set *from, struct attr_set **out)
{
    struct attr_set *copies = NULL;
    int count = from ? from->count : 0, rc = MPI_SUCCESS;
    if (count == 0) {
        *out = NULL;
        return MPI_SUCCESS;
    }
    /* Iterate over a snapshot with a reference to every keyval: a copy function may change the set. */
    struct attribute *list = malloc((size_t)count * sizeof(*list));
    if (!list)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot copy attributes");
    memcpy(list, from->list, (size_t)count * sizeof(*list));
    for (int i = 0; i < count; i++)
        list[i].keyval->refs++;
    for (int i = 0; i < count && !rc; i++)
        rc = copy_attribute(p, handle, &list[i], &copies);
    for (int i = 0; i < count; i++)
        keyval_release(p, list[i].keyval);
    free(list);
    if (rc) {
        attr_delete_all(p, handle, &copies);
        return rc;
    }
    *out = copies;
    return MPI_SUCCESS;
}

int attr_delete_all(struct proc *p, void *handle, struct attr_set **set)
{
    while (*set && (*set)->count > 0) {
        int rc = remove_attribute(p, handle, set, &(*set)->list[(*set)->count - 1]);
        if (rc)
            return rc;
    }
    if (*set) {
        free((*set)->list);
        free(*set);
        *set = NULL;
    }
    return MPI_SUCCESS;
}
