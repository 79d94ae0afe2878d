/* info_api.c: `fishplate info --api`: which MPI functions are there. The list is the generator's, so it
 * cannot be wrong about the library it is built into.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api_list.h"
#include "info.h"

size_t info_api_implemented(const struct fishplate_inside *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->api_count; i++)
        n += in->api[i].implemented;
    return n;
}

void info_api_text(const struct fishplate_inside *in, const struct info_options *o)
{
    for (size_t i = 0; i < in->api_count; i++) {
        const struct api_entry *e = &in->api[i];
        if (o->missing && e->implemented)
            continue;
        if (o->missing)
            printf("%-40s %-14s MPI %s\n", e->name, e->chapter, e->since);
        else
            printf("%-8s %-40s %-14s MPI %s\n", e->implemented ? "yes" : "missing", e->name, e->chapter,
                   e->since);
    }
    size_t there = info_api_implemented(in);
    printf("\n%zu functions: %zu implemented, %zu missing. A missing one returns "
           "MPI_ERR_UNSUPPORTED_OPERATION.\n",
           in->api_count, there, in->api_count - there);
}

void info_api_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    size_t there = info_api_implemented(in);
    json_object(j, "api");
    json_int(j, "functions", (long long)in->api_count);
    json_int(j, "implemented", (long long)there);
    json_int(j, "missing", (long long)(in->api_count - there));
    json_array(j, "list");
    for (size_t i = 0; i < in->api_count; i++) {
        const struct api_entry *e = &in->api[i];
        if (o->missing && e->implemented)
            continue;
        json_object(j, NULL);
        json_string(j, "name", e->name);
        json_string(j, "chapter", e->chapter);
        json_string(j, "since", e->since);
        json_bool(j, "implemented", e->implemented);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}
