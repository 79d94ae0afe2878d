/* info_hints.c: prints the info keys (hints) for files that the library knows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/options.h"
#include "info.h"
#include "io/hints.h"

void info_hints_text(const struct fishplate_inside *in, const struct info_options *o)
{
    (void)o;
    printf("Hints of files: keys of the info object that MPI_File_open gets. MPI_File_get_info returns those "
           "in use.\n\n");
    for (size_t i = 0; i < in->hints_count; i++) {
        const struct io_hint_info *h = &in->hints[i];
        printf("%s = %s%s%s\n", h->key, h->values, h->preset[0] ? "; default " : "", h->preset);
        cli_print_text(h->doc, 0, 4, stdout);
    }
}

void info_hints_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    (void)o;
    json_array(j, "hints");
    for (size_t i = 0; i < in->hints_count; i++) {
        const struct io_hint_info *h = &in->hints[i];
        json_record(j, NULL, "key=%s values=%s default=%s doc=%s", h->key, h->values, h->preset, h->doc);
    }
    json_end(j);
}
