/* error.c: the texts of error classes, and the classes and codes that users add. A user-defined class is
 * stored as a code whose class is itself. This module has its own lock, because it works without a struct
 * proc.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/error.h"

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static const struct {
    int errclass;
    const char *name, *text;
} classes[] = {
#define X(CLASS, TEXT) {CLASS, #CLASS, TEXT},
#include "obj/error_classes.def"
#undef X
};

struct user_code {
    bool used;
    int errclass; /* a class: its own number */
    int codes;    /* a class: number of codes that belong to it, without itself */
    char *text;
    int next, prev; /* if not used: links of the list of free entries; NONE at its ends */
};

#define NONE (-1)

static struct {
    pthread_mutex_t lock;
    struct user_code *codes; /* code MPI_ERR_LASTCODE + 1 + index */
    int count;               /* entries up to the last one in use; defines MPI_LASTUSEDCODE */
    int room;
    int free; /* head of the list of free entries; NONE: empty */
} user = {.lock = PTHREAD_MUTEX_INITIALIZER, .free = NONE};

#define FIRST_USER_CODE (MPI_ERR_LASTCODE + 1)

static int find_class_index(int errclass)
{
    for (size_t i = 0; i < COUNT_OF(classes); i++)
        if (classes[i].errclass == errclass)
            return (int)i;
    return -1;
}

const char *error_class_name(int errclass)
{
    int i = find_class_index(errclass);
    return i < 0 ? NULL : classes[i].name;
}

/* The record of a user-defined error code; NULL if there is none. Requires the lock. */
static struct user_code *user_find(int code)
{
    int64_t index = (int64_t)code - FIRST_USER_CODE;
    return index >= 0 && index < user.count && user.codes[index].used ? &user.codes[index] : NULL;
}

static int error_unknown_code(int code)
{
    return err_set(MPI_ERR_ARG, "%d is not an error class or code", code);
}

/* Requires the lock. */
static int user_text(int code, char *out, int *len)
{
    struct user_code *u = user_find(code);
    if (!u)
        return error_unknown_code(code);
    *len = snprintf(out, MPI_MAX_ERROR_STRING, "%s", u->text ? u->text : "");
    return MPI_SUCCESS;
}

int error_text(int code, char *out, int *len)
{
    int i = find_class_index(code);
    if (i >= 0) {
        *len = snprintf(out, MPI_MAX_ERROR_STRING, "%s: %s", classes[i].name, classes[i].text);
        return MPI_SUCCESS;
    }
    pthread_mutex_lock(&user.lock);
    int rc = user_text(code, out, len);
    pthread_mutex_unlock(&user.lock);
    return rc;
}

int error_class_of(int code, int *errclass)
{
    if (find_class_index(code) >= 0) {
        *errclass = code;
        return MPI_SUCCESS;
    }
    pthread_mutex_lock(&user.lock);
    struct user_code *u = user_find(code);
    if (u)
        *errclass = u->errclass;
    pthread_mutex_unlock(&user.lock);
    return u ? MPI_SUCCESS : error_unknown_code(code);
}

int error_last_code(void)
{
    pthread_mutex_lock(&user.lock);
    int last = MPI_ERR_LASTCODE + user.count;
    pthread_mutex_unlock(&user.lock);
    return last;
}

static void free_push(int i)
{
    user.codes[i].prev = NONE;
    user.codes[i].next = user.free;
    if (user.free != NONE)
        user.codes[user.free].prev = i;
    user.free = i;
}

static void free_unlink(int i)
{
    const struct user_code *u = &user.codes[i];
    if (u->prev == NONE)
        user.free = u->next;
    else
        user.codes[u->prev].next = u->next;
    if (u->next != NONE)
        user.codes[u->next].prev = u->prev;
}

/* Allocates a released index, or else extends the array. Requires the lock. */
static int user_allocate_index(int *index)
{
    if (user.free != NONE) {
        *index = user.free;
        free_unlink(*index);
        return MPI_SUCCESS;
    }
    if (user.count == user.room) {
        int room = user.room ? 2 * user.room : 16;
        struct user_code *codes = realloc(user.codes, (size_t)room * sizeof(*codes));
        if (!codes)
            return err_set(MPI_ERR_NO_MEM, "out of memory for an error code");
        user.codes = codes;
        user.room = room;
    }
    *index = user.count++;
    return MPI_SUCCESS;
}

/* Releases an index. Removes free entries at the end, as MPI_LASTUSEDCODE requires. Requires the lock. */
static void user_release_index(int index)
{
    user.codes[index].used = false;
    free_push(index);
    for (; user.count > 0 && !user.codes[user.count - 1].used; user.count--)
        free_unlink(user.count - 1);
}

/* Adds an error code; errclass 0: adds a new class. Requires the lock. */
static int user_add(int errclass, int *code)
{
    int index;
    int rc = user_allocate_index(&index);
    if (rc)
        return rc;
    *code = FIRST_USER_CODE + index;
    user.codes[index] = (struct user_code){.used = true, .errclass = errclass ? errclass : *code};
    struct user_code *of = errclass ? user_find(errclass) : NULL;
    if (of)
        of->codes++;
    return MPI_SUCCESS;
}

int error_add_class(int *errclass)
{
    pthread_mutex_lock(&user.lock);
    int rc = user_add(0, errclass);
    pthread_mutex_unlock(&user.lock);
    return rc;
}

/* Requires the lock. */
static bool is_user_class(int code)
{
    struct user_code *u = user_find(code);
    return u && u->errclass == code;
}

int error_add_code(int errclass, int *code)
{
    pthread_mutex_lock(&user.lock);
    bool known = find_class_index(errclass) > 0 || is_user_class(errclass);
    int rc = known ? user_add(errclass, code) : err_set(MPI_ERR_ARG, "%d is not an error class", errclass);
    pthread_mutex_unlock(&user.lock);
    return rc;
}

/* Sets the text of a user-defined code; NULL removes it. Requires the lock. */
static int user_set_text(int code, const char *text)
{
    struct user_code *u = user_find(code);
    if (!u)
        return err_set(MPI_ERR_ARG, "%d is not an error class or code that the program added", code);
    if (text && strlen(text) >= MPI_MAX_ERROR_STRING)
        return err_set(MPI_ERR_ARG, "an error string has at most %d characters", MPI_MAX_ERROR_STRING - 1);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return err_set(MPI_ERR_NO_MEM, "out of memory for an error string");
    free(u->text);
    u->text = copy;
    return MPI_SUCCESS;
}

int error_add_string(int code, const char *text)
{
    pthread_mutex_lock(&user.lock);
    int rc = user_set_text(code, text);
    pthread_mutex_unlock(&user.lock);
    return rc;
}

int error_remove_string(int code)
{
    return error_add_string(code, NULL);
}

/* Requires the lock. */
static int user_remove(int code, bool a_class)
{
    if (!user_find(code) || is_user_class(code) != a_class)
        return err_set(MPI_ERR_ARG, "%d is not an error %s that the program added", code,
                       a_class ? "class" : "code");
    struct user_code *u = user_find(code);
    if (u->codes > 0)
        return err_set(MPI_ERR_ARG, "error class %d still has error codes (%d)", code, u->codes);
    if (u->text)
        return err_set(MPI_ERR_ARG, "%d still has an error string", code);
    struct user_code *of = a_class ? NULL : user_find(u->errclass);
    if (of)
        of->codes--;
    user_release_index(code - FIRST_USER_CODE);
    return MPI_SUCCESS;
}

int error_remove_class(int errclass)
{
    pthread_mutex_lock(&user.lock);
    int rc = user_remove(errclass, true);
    pthread_mutex_unlock(&user.lock);
    return rc;
}

int error_remove_code(int code)
{
    pthread_mutex_lock(&user.lock);
    int rc = user_remove(code, false);
    pthread_mutex_unlock(&user.lock);
    return rc;
}
