/* attr.c: the attribute functions of communicators, datatypes and windows, over src/obj/attr.h. The
 * deprecated MPI-1 names share these implementations.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/attr.h"

#include <stdio.h>
#include <string.h>

#include "api/forward.h"
#include "impl.h"
#include "rma/win.h"

int attr_return_value(enum attr_kind kind, struct attr_set *set, int keyval, void *attribute_val, int *flag)
{
    void *value = NULL;
    bool found = false;
    int rc = attr_get(the_proc, kind, set, keyval, &value, &found);
    if (rc)
        return rc;
    *flag = found;
    if (found)
        memcpy(attribute_val, &value, sizeof(value));
    return MPI_SUCCESS;
}

/* Returns a window attribute that MPI predefines: for WIN_BASE the address itself, for the others a pointer
 * to the value. */
static void *win_predefined_value(struct win *win, int keyval)
{
    switch (keyval) {
    case MPI_WIN_BASE:
        return win->memory;
    case MPI_WIN_SIZE:
        return &win->size;
    case MPI_WIN_DISP_UNIT:
        return &win->unit_int;
    case MPI_WIN_CREATE_FLAVOR:
        return &win->flavor;
    default:
        return &win->model;
    }
}

int impl_Win_get_attr(struct win *win, int win_keyval, void *attribute_val, int *flag)
{
    if (win_keyval < MPI_WIN_BASE || win_keyval > MPI_WIN_MODEL)
        return attr_return_value(ATTR_WIN, win->attrs, win_keyval, attribute_val, flag);
    void *value = win_predefined_value(win, win_keyval);
    *flag = 1;
    memcpy(attribute_val, &value, sizeof(value));
    return MPI_SUCCESS;
}

/* The names of communicators, datatypes and windows. */

int object_name_set(char name[MPI_MAX_OBJECT_NAME], const char *text)
{
    snprintf(name, MPI_MAX_OBJECT_NAME, "%s", text);
    return MPI_SUCCESS;
}

int object_name_get(const char *name, char *out, int *resultlen)
{
    *resultlen = (int)strlen(strcpy(out, name));
    return MPI_SUCCESS;
}
