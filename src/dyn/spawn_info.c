/* spawn_info.c: info keys of MPI_Comm_spawn that are evaluated without the launcher (MPI-5.0, 11.8.4): `file`
 * names a file with more keys, one in each line, and `arch` requires a processor architecture.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/err.h"
#include "dyn/spawn.h"

static char *spawn_info_trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    return text;
}

/* Adds a line of the key file, such as "wdir = /tmp". Keys that the program has set take precedence. */
static int add_info_line(struct info *info, char *line, const char *path, int number)
{
    char *key = spawn_info_trim(line), *equals = strchr(key, '=');
    if (*key == '\0' || *key == '#')
        return 0;
    if (!equals || equals == key)
        return err_set(MPI_ERR_INFO_VALUE, "line %d of %.200s, the info key file, is not \"key = value\"",
                       number, path);
    *equals = '\0';
    key = spawn_info_trim(key);
    char *value = spawn_info_trim(equals + 1);
    if (strlen(key) >= MPI_MAX_INFO_KEY || strlen(value) >= MPI_MAX_INFO_VAL)
        return err_set(MPI_ERR_INFO_VALUE, "line %d of %.200s, the info key file, is too long", number, path);
    return info_get(info, key) ? 0 : info_set(info, key, value);
}

static int read_file(struct info *info, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int rc = 0;
    if (!f)
        return err_set(MPI_ERR_INFO_VALUE, "cannot open %.200s, the info key file: %s", path,
                       strerror(errno));
    for (int number = 1; !rc && getline(&line, &room, f) >= 0; number++)
        rc = add_info_line(info, line, path, number);
    free(line);
    fclose(f);
    return rc;
}

static int check_arch(const char *wanted)
{
    struct utsname here;
    if (uname(&here) != 0 || strcasecmp(wanted, here.machine) == 0)
        return 0;
    return err_set(MPI_ERR_SPAWN, "the info key arch requires %.60s, but the processors of this job are %s",
                   wanted, here.machine);
}

int spawn_info(const struct info *given, struct info **out)
{
    *out = NULL;
    int rc = given ? info_copy(given, out) : 0;
    if (rc || !given)
        return rc;
    const char *path = info_get(given, "file");
    rc = path ? read_file(*out, path) : 0;
    const char *arch = rc ? NULL : info_get(*out, "arch");
    rc = arch ? check_arch(arch) : rc;
    if (path)
        info_delete(*out, "file");
    if (info_get(*out, "arch"))
        info_delete(*out, "arch");
    if (rc) {
        info_release(*out);
        *out = NULL;
    }
    return rc;
}
