/* ship.c: writes the record as lines of text. In MPI_Finalize rank 0 collects all records over its own
 * communicator, so that only its file system is used; otherwise each process writes a file. `fishplate prof`
 * reads the file; FISHPLATE_PROF names its folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ownfile.h"
#include "prof.h"
#include "ticks.h"

enum { TAG = 1, NAME_SIZE = 256 };

/* Makes one name for all processes of a job: the launcher's job name, else the number of the process that
 * started them. */
static void job_name(char *out, size_t size)
{
    const char *job = getenv("FISHPLATE_JOB");
    if (job && *job)
        snprintf(out, size, "%.200s", job);
    else
        snprintf(out, size, "%d", prof.size > 1 ? (int)getppid() : (int)getpid());
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.')
            *c = '_';
}

static void put_bins(FILE *out, const char *word, const struct prof_bin *bins)
{
    for (int b = 0; b < PROF_BINS; b++)
        if (bins[b].count)
            fprintf(out, "%s %d %" PRIu64 " %" PRIu64 "\n", word, b, bins[b].count, bins[b].bytes);
}

static void put_calls(FILE *out)
{
    static const char *const kinds[] = {[PROF_P2P] = "p2p", [PROF_WAIT] = "wait", [PROF_COLL] = "coll",
                                        [PROF_RMA] = "rma", [PROF_IO] = "io",     [PROF_OTHER] = "other"};
    for (int i = 0; i < CALLS; i++) {
        const struct prof_stat *s = &prof.calls[i];
        const struct prof_function *f = &prof_functions[i];
        if (s->calls)
            fprintf(out, "call %s %s %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                    f->name, kinds[f->kind], f->nonblocking, s->calls, ticks_to_ns(s->ticks),
                    ticks_to_ns(s->ticks_max), s->sized, s->bytes);
    }
}

static void put_record(FILE *out, const char *job)
{
    fprintf(out, "record 1\njob %s\nrank %d %d\nhost %s\nprogram %s\n", job, prof.rank, prof.size, prof.host,
            program_invocation_short_name);
    prof_about_put(out);
    fprintf(out, "time %" PRIu64 " %" PRIu64 " %d\n", prof.on_ns, ticks_to_ns(prof.mpi_ticks), prof.threaded);
    put_calls(out);
    prof_collectives_put(out);
    prof_timeline_put(out);
    put_bins(out, "p2p", prof.p2p);
    put_bins(out, "received", prof.received);
    put_bins(out, "coll", prof.coll);
    for (int r = 0; prof.peers && r < prof.size; r++)
        if (prof.peers[r].messages)
            fprintf(out, "peer %d %" PRIu64 " %" PRIu64 "\n", r, prof.peers[r].messages, prof.peers[r].bytes);
    fprintf(out, "outside %" PRIu64 " %" PRIu64 "\n", prof.outside.messages, prof.outside.bytes);
    for (int kind = 0; kind < PROF_MEMORY_KINDS; kind++)
        if (prof.memory[kind])
            fprintf(out, "memory %d %" PRIu64 "\n", kind, prof.memory[kind]);
    const struct prof_reuse *u = &prof.reuse;
    fprintf(out, "reuse %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", u->accesses,
            u->reused, u->bytes, u->reused_bytes, u->dropped);
}

/* Runs in a signal handler: allocates no memory and does not query MPI. The interrupted call counts up to
 * this moment. */
void prof_write_interrupted_record(FILE *out, int signal_number)
{
    char job[NAME_SIZE];
    uint64_t start, spent = 0;
    const int call = prof_current_call(&start);
    const uint64_t mpi_ticks = prof.mpi_ticks, on_ns = prof.on_ns;
    const struct prof_stat stat = call >= 0 ? prof.calls[call] : (struct prof_stat){0};
    job_name(job, sizeof(job));
    if (call >= 0 && start) {
        spent = prof_read_ticks() - start;
        prof.calls[call].calls++;
        prof.calls[call].ticks += spent;
        prof.calls[call].ticks_max = spent > prof.calls[call].ticks_max ? spent : prof.calls[call].ticks_max;
        prof.mpi_ticks += spent;
    }
    if (prof.on_since)
        prof.on_ns += clock_ns() - prof.on_since;
    put_record(out, job);
    fprintf(out, "cut %d %s %" PRIu64 "\nend\n", signal_number, call >= 0 ? prof_functions[call].name : "-",
            ticks_to_ns(spent));
    prof.mpi_ticks = mpi_ticks; /* the process may continue if it handles the signal */
    prof.on_ns = on_ns;
    if (call >= 0)
        prof.calls[call] = stat;
}

/* Formats the record as text. */
static char *prof_format_record(const char *job, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out)
        return NULL;
    put_record(out, job);
    prof_sites_put(out);
    if (prof.sent_known)
        fwrite(prof.sent_text, 1, prof.sent_size, out);
    fprintf(out, "end\n");
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

FILE *prof_create_file(const char *path, const char *name)
{
    const int folder = path ? ownfile_open_folder(path, false) : AT_FDCWD;
    if (path && folder < 0)
        return NULL;
    int fd = ownfile_create(folder, name, O_WRONLY);
    if (fd < 0 && errno == EEXIST)
        fd = ownfile_open(folder, name, O_WRONLY | O_TRUNC);
    const int error = errno;
    if (path)
        close(folder);
    errno = error;
    return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Opens the record file in the folder that `fishplate prof` made, or in the working directory if that
 * fails. */
static FILE *open_file(const char *job, bool alone)
{
    const char *folder = getenv("FISHPLATE_PROF");
    char name[2 * NAME_SIZE];
    FILE *out = NULL;
    if (alone)
        snprintf(name, sizeof(name), "fishplate-prof-%s-rank%d.txt", job, prof.rank);
    else
        snprintf(name, sizeof(name), "fishplate-prof-%s.txt", job);
    if (folder && *folder) {
        out = prof_create_file(folder, name);
        if (out)
            return out;
    }
    out = prof_create_file(NULL, name);
    if (!out)
        fprintf(stderr,
                "fishplate prof: rank %d cannot write its record %s: %s. Start the program in a folder where "
                "it may write.\n",
                prof.rank, name, strerror(errno));
    else if (!alone || prof.rank == 0)
        fprintf(stderr, "fishplate prof: the record is in %s; `fishplate prof --read %s` shows it.\n", name,
                alone ? "fishplate-prof-*-rank*.txt" : name);
    return out;
}

static void ship_report_loss(void)
{
    fprintf(stderr,
            "fishplate prof: a record could not be written: %s. The report will be incomplete. TMPDIR names "
            "another folder for records.\n",
            strerror(errno));
}

static void ship_write(FILE *out, const char *text, size_t size)
{
    if (out && fwrite(text, 1, size, out) != size)
        ship_report_loss();
}

static void close_file(FILE *out)
{
    if (out && fclose(out) != 0)
        ship_report_loss();
}

void prof_ship_own_record(void)
{
    size_t size = 0;
    char job[NAME_SIZE];
    job_name(job, sizeof(job));
    char *text = prof_format_record(job, &size);
    FILE *out = text ? open_file(job, true) : NULL;
    ship_write(out, text, size);
    close_file(out);
    free(text);
}

/* Receives and writes the records one after the other, because rank 0 has memory for one record at a time. */
static void ship_receive_records(MPI_Comm comm, FILE *out)
{
    for (int r = 1; r < prof.size; r++) {
        MPI_Status status;
        int n = 0;
        char *text = NULL;
        if (PMPI_Probe(r, TAG, comm, &status) == MPI_SUCCESS &&
            PMPI_Get_count(&status, MPI_BYTE, &n) == MPI_SUCCESS)
            text = malloc((size_t)n + 1);
        if (!text || PMPI_Recv(text, n, MPI_BYTE, r, TAG, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            fprintf(stderr,
                    "fishplate prof: rank 0 did not get the record of rank %d (out of memory?). The report "
                    "is without it.\n",
                    r);
        else
            ship_write(out, text, (size_t)n);
        free(text);
    }
}

void prof_ship_gathered(void)
{
    MPI_Comm comm;
    size_t size = 0;
    char job[NAME_SIZE] = "";
    /* counted before the records themselves are sent */
    FILE *sent = open_memstream(&prof.sent_text, &prof.sent_size);
    if (sent) {
        prof_about_put_sent(sent);
        prof.sent_known = fclose(sent) == 0;
    }
    /* Splits instead of duplicating: MPI_Comm_dup would call the user's attribute functions. */
    if (PMPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm) != MPI_SUCCESS)
        return;
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    /* Rank 0 makes the name, because parent processes differ between nodes, and appends its process
     * number, because a job may spawn another. */
    if (prof.rank == 0) {
        job_name(job, sizeof(job));
        snprintf(job + strlen(job), sizeof(job) - strlen(job), "-%d", (int)getpid());
    }
    PMPI_Bcast(job, sizeof(job), MPI_CHAR, 0, comm);
    char *text = prof_format_record(job, &size);
    if (!text)
        size = 0;
    if (prof.rank == 0) {
        FILE *out = open_file(job, false);
        ship_write(out, text, size);
        ship_receive_records(comm, out);
        close_file(out);
    } else {
        PMPI_Send(text, (int)size, MPI_BYTE, 0, TAG, comm);
    }
    free(text);
    free(prof.sent_text);
    prof.sent_known = false;
    PMPI_Comm_free(&comm);
}
