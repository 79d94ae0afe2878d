/* prof_format.c: the words and numbers that the text and the HTML report share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "prof.h"

const char *const prof_kind_names[PROF_KINDS] = {"point to point", "waiting", "collective",
                                                 "one-sided",      "files",   "other MPI"};
const char *const prof_class_names[4] = {"< 2 KiB", "2 - 16 KiB", "16 KiB - 1 MiB", ">= 1 MiB"};

double prof_imbalance(const struct prof_function *f)
{
    return f->mean > 0 ? f->max / f->mean - 1 : 0;
}

double prof_share(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

const char *prof_bytes(double bytes, char out[PROF_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 6; u++)
        bytes /= 1024;
    const bool whole = bytes == (double)(long)bytes;
    snprintf(out, PROF_TEXT, whole ? "%.0f %s" : "%.1f %s", bytes, units[u]);
    return out;
}

const char *prof_seconds(double seconds, char out[PROF_TEXT])
{
    if (seconds == 0)
        snprintf(out, PROF_TEXT, "0");
    else if (seconds < 1e-3)
        snprintf(out, PROF_TEXT, "%.1f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(out, PROF_TEXT, "%.2f ms", seconds * 1e3);
    else
        snprintf(out, PROF_TEXT, "%.3f s", seconds);
    return out;
}
