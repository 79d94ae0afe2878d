/* info.c: the info functions. They work before MPI_Init and after MPI_Finalize.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "api/check.h"
#include "api/forward.h"
#include "impl.h"
#include "obj/handle.h"
#include "obj/hardware.h"
#include "obj/info.h"

static int check_key(const char *key)
{
    size_t len = strlen(key);
    if (len == 0 || len >= MPI_MAX_INFO_KEY)
        return err_set(MPI_ERR_INFO_KEY, "a key has 1 to %d characters, not %zu", MPI_MAX_INFO_KEY - 1, len);
    return MPI_SUCCESS;
}

static int check_writable(const struct info *info)
{
    return info->obj.predefined ? err_set(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed") : MPI_SUCCESS;
}

int info_return_handle(int rc, struct info *made, MPI_Info *out)
{
    if (!rc)
        *out = info_handle(made);
    return rc;
}

int impl_Info_free(MPI_Info *info)
{
    struct info *i = info_from(the_proc, *info);
    if (!i)
        return bad_handle(HANDLE_INFO, "info", *info);
    if (i->obj.predefined)
        return err_set(MPI_ERR_INFO, "info is MPI_INFO_ENV, which cannot be freed");
    info_release(i);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

int impl_Info_set(struct info *info, const char *key, const char *value)
{
    int rc = check_writable(info);
    return rc ? rc : info_set(info, key, value);
}

int impl_Info_delete(struct info *info, const char *key)
{
    int rc = check_writable(info);
    if (!rc)
        rc = check_key(key);
    return rc ? rc : info_delete(info, key);
}

int impl_Info_get(struct info *info, const char *key, int valuelen, char *value, int *flag)
{
    int rc = check_key(key);
    if (rc)
        return rc;
    const char *found = info_get(info, key);
    *flag = found != NULL;
    if (found)
        snprintf(value, (size_t)valuelen + 1, "%s", found);
    return MPI_SUCCESS;
}

int impl_Info_get_string(struct info *info, const char *key, int *buflen, char *value, int *flag)
{
    int rc = check_key(key);
    if (rc)
        return rc;
    if (*buflen < 0)
        return err_set(MPI_ERR_ARG, "buflen is %d; it must not be negative", *buflen);
    const char *found = info_get(info, key);
    *flag = found != NULL;
    if (found) {
        if (*buflen > 0)
            snprintf(value, (size_t)*buflen, "%s", found);
        *buflen = (int)strlen(found) + 1;
    }
    return MPI_SUCCESS;
}

int impl_Info_get_valuelen(struct info *info, const char *key, int *valuelen, int *flag)
{
    int rc = check_key(key);
    if (rc)
        return rc;
    const char *found = info_get(info, key);
    *flag = found != NULL;
    if (found)
        *valuelen = (int)strlen(found);
    return MPI_SUCCESS;
}

int impl_Info_get_nthkey(struct info *info, int n, char *key)
{
    if (n < 0 || n >= info->count)
        return err_set(MPI_ERR_ARG, "n is %d; the info object has %d keys", n, info->count);
    strcpy(key, info->pairs[n].key);
    return MPI_SUCCESS;
}

/* The kinds of hardware this library knows, and whether this process is bound to one piece of each. */
int impl_Get_hw_resource_info(MPI_Info *hw_info)
{
    int32_t place[HARDWARE_LEVELS];
    struct info *made;
    int rc = info_create(&made);
    if (rc)
        return rc;
    hardware_find_places(the_proc->boot, place);
    for (int level = 0; level < HARDWARE_LEVELS && !rc; level++)
        rc = info_set(made, hardware_level_name(level), place[level] >= 0 ? "true" : "false");
    if (rc) {
        info_release(made);
        return rc;
    }
    *hw_info = info_handle(made);
    return MPI_SUCCESS;
}
