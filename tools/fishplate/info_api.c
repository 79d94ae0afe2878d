/* info_api.c: `fishplate info --api`: prints the MPI functions of the library, all of MPI 5.0. The generator
 * makes the list and refuses functions without an implementation, so the list is always correct.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api_list.h"
#include "info.h"

void info_api_text(const struct fishplate_inside *in, const struct info_options *o)
{
    (void)o;
    for (size_t i = 0; i < in->api_count; i++) {
        const struct api_entry *e = &in->api[i];
        printf("%-40s %-14s MPI %s\n", e->name, e->chapter, e->since);
    }
    printf("\n%zu functions: all of MPI 5.0.\n", in->api_count);
}

void info_api_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    (void)o;
    json_object(j, "api");
    json_int(j, "functions", (long long)in->api_count);
    json_array(j, "list");
    for (size_t i = 0; i < in->api_count; i++) {
        const struct api_entry *e = &in->api[i];
        json_record(j, NULL, "name=%s chapter=%s since=%s", e->name, e->chapter, e->since);
    }
    json_end(j);
    json_end(j);
}
