/* devlist.c: parses the user's list of adapters; see devlist.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/devlist.h"

#include <stdlib.h>
#include <string.h>

bool devlist_entry_matches(const char *entry, size_t len, const char *device, int port)
{
    size_t name = strlen(device);
    if (len < name || memcmp(entry, device, name) != 0)
        return false;
    if (len == name)
        return true;
    char *end;
    return entry[name] == ':' && len > name + 1 && strtol(entry + name + 1, &end, 10) == port &&
           end == entry + len;
}

int devlist_find_position(const char *list, const char *device, int port)
{
    int wanted = 0, place = -1;
    for (const char *at = list; *at;) {
        at += strspn(at, ", \t");
        bool exclude = *at == '^';
        at += exclude;
        size_t len = strcspn(at, ", \t");
        bool mine = len > 0 && devlist_entry_matches(at, len, device, port);
        at += len;
        if (exclude && mine)
            return -1;
        if (exclude || len == 0)
            continue;
        if (mine && place < 0)
            place = wanted;
        wanted++;
    }
    return wanted == 0 ? 0 : place;
}

const char *devlist_next(const char **at, size_t *len)
{
    *at += strspn(*at, ", \t^");
    const char *entry = *at;
    *len = strcspn(entry, ", \t");
    *at += *len;
    return *len ? entry : NULL;
}
