/* prof_format.c: formats the texts and numbers that the text and the HTML report share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "prof.h"

const char *const prof_kind_words[PROF_KINDS] = {"p2p", "wait", "coll", "rma", "io", "other"};

const char *const prof_kind_names[PROF_KINDS] = {"point to point", "waiting", "collective",
                                                 "one-sided",      "files",   "other MPI"};
const char *const prof_class_names[4] = {"< 2 KiB", "2 - 16 KiB", "16 KiB - 1 MiB", ">= 1 MiB"};

double prof_imbalance(const struct prof_function *f)
{
    return f->mean > 0 ? f->max / f->mean - 1 : 0;
}

double prof_compute_percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

const char *prof_format_bytes(double bytes, char out[PROF_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 6; u++)
        bytes /= 1024;
    const bool whole = bytes == (double)(long)bytes;
    snprintf(out, PROF_TEXT, whole ? "%.0f %s" : "%.1f %s", bytes, units[u]);
    return out;
}

const char *prof_format_seconds(double seconds, char out[PROF_TEXT])
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

const char *prof_format_date(const struct prof_job *job, char out[PROF_TEXT_LONG])
{
    const time_t when = (time_t)job->date;
    struct tm parts;
    out[0] = '\0';
    if (job->date && gmtime_r(&when, &parts))
        strftime(out, PROF_TEXT_LONG, "%Y-%m-%d %H:%M UTC", &parts);
    return out;
}

/* True if the launcher or the user sends this signal; any other signal is a crash. */
static bool format_is_external_signal(int signal_number)
{
    return signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP;
}

static size_t format_rank_end(const struct prof_job *job, int r, char *out, size_t size)
{
    const struct prof_rank *rank = &job->ranks[r];
    char after[PROF_TEXT];
    if (strcmp(rank->cut_in, "-") == 0)
        return (size_t)snprintf(out, size, "Rank %d was ended by signal %d (%s), outside MPI. ", r, rank->cut,
                                strsignal(rank->cut));
    return (size_t)snprintf(out, size, "Rank %d was ended by signal %d (%s), in %s for %s. ", r, rank->cut,
                            strsignal(rank->cut), rank->cut_in, prof_format_seconds(rank->cut_after, after));
}

void prof_describe_missing_data(const struct prof_job *job, char *out, size_t size)
{
    enum { FEW = 4 };
    size_t used = 0;
    int shown = 0, cut = 0;
    out[0] = '\0';
    for (int crash = 1; crash >= 0; crash--)
        for (int r = 0; r < job->size; r++) {
            if (!job->ranks[r].cut || format_is_external_signal(job->ranks[r].cut) == crash)
                continue;
            cut++;
            if (shown < FEW && used < size) {
                used += format_rank_end(job, r, out + used, size - used);
                shown++;
            }
        }
    if (cut > shown && used < size)
        used +=
            (size_t)snprintf(out + used, size - used, "%d ranks more were ended by signals. ", cut - shown);
    if (job->nrecords < job->size && used < size)
        used += (size_t)snprintf(
            out + used, size - used,
            "Only %d of %d ranks left a record: the others did not end in order, or ran on another "
            "machine. ",
            job->nrecords, job->size);
    if (used > 0 && used < size)
        snprintf(out + used, size - used, "The figures are those until then.");
}
