/* peers.c: other MPI libraries on the same fabric. The ranks' part of a benchmark is plain MPI: it is
 * compiled with each library's own mpicc and started by its own mpiexec, each rank on a node of its own. A
 * line of output names each library that is not installed or does not run.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "peers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define UCX   "UCX_TLS=rc,self UCX_NET_DEVICES=softib0:1 UCX_WARN_UNUSED_ENV_VARS=n "
#define OPEN  "--allow-run-as-root --oversubscribe --bind-to none --mca pml "
#define LIMIT "120" /* seconds: time limit of one job */

/* Other MPI libraries with the transport that each entry measures; entries of one library share the
 * compiled program. */
static const struct known {
    const char *name, *vendor, *options, *settings;
} known[IB_PEERS] = {
    {"Open MPI", "openmpi", OPEN "ob1 --mca btl openib,self --mca btl_openib_allow_ib 1", ""},
    {"Open MPI, UCX", "openmpi", OPEN "ucx --mca btl ^openib", UCX},
    {"MPICH, UCX", "mpich", "", UCX "MPIR_CVAR_NOLOCAL=1"}, /* no shared memory between its ranks */
};

static void peers_report_missing(struct ib_peers *p, const char *name, const char *why)
{
    if (p->nmissing < IB_PEERS)
        snprintf(p->missing[p->nmissing++], sizeof(p->missing[0]), "%s is not measured: %s", name, why);
}

/* Runs a command and stores its messages in the file `errors`; true if the command succeeded. */
static bool peers_run(char *const *argv, const char *errors)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        dup2(fd, STDOUT_FILENO);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Finds the installed source files and creates a folder for the programs. */
static bool peers_prepare(struct ib_peers *p, const struct ib_driver *d)
{
    const char *tmp = getenv("TMPDIR");
    char header[sizeof(p->sources) + 16];
    const int bin = (int)(strrchr(d->program, '/') - d->program);
    snprintf(p->sources, sizeof(p->sources), "%.*s/../share/fishplate", bin, d->program);
    snprintf(p->softib, sizeof(p->softib), "%.*s/softib", bin, d->program);
    snprintf(header, sizeof(header), "%s/bench/bench.h", p->sources);
    if (access(header, R_OK) != 0 || access(p->softib, X_OK) != 0)
        return false;
    snprintf(p->folder, sizeof(p->folder), "%s/fishplate-peers-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(p->folder))
        p->folder[0] = 0;
    return p->folder[0];
}

static bool peers_compile(struct ib_peers *p, const char *vendor, const char *const *sources)
{
    char include[sizeof(p->sources) + 8], mpicc[32], out[sizeof(p->folder) + 32],
        errors[sizeof(p->folder) + 32], pattern[sizeof(p->sources) + 64];
    char *front[] = {mpicc, include, "-std=c11", "-D_GNU_SOURCE", "-O2", "-w", "-pthread", "-o", out},
         *argv[128];
    size_t n = sizeof(front) / sizeof(front[0]);
    glob_t found = {0};
    snprintf(include, sizeof(include), "-I%s", p->sources);
    snprintf(mpicc, sizeof(mpicc), "mpicc.%s", vendor);
    snprintf(out, sizeof(out), "%s/%s", p->folder, vendor);
    snprintf(errors, sizeof(errors), "%s/errors", p->folder);
    memcpy(argv, front, sizeof(front));
    for (int i = 0; sources[i]; i++) {
        snprintf(pattern, sizeof(pattern), "%s/%s", p->sources, sources[i]);
        if (glob(pattern, i ? GLOB_APPEND : 0, NULL, &found) != 0)
            break;
    }
    for (size_t i = 0; i < found.gl_pathc && n < 120; i++)
        argv[n++] = found.gl_pathv[i];
    argv[n++] = "-lm";
    argv[n] = NULL;
    const bool ok = peers_run(argv, errors);
    globfree(&found);
    return ok;
}

static bool library_is_installed(const char *vendor)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : ""), *save = NULL;
    bool found = false;
    for (char *dir = strtok_r(copy, ":", &save); dir && !found; dir = strtok_r(NULL, ":", &save)) {
        char mpicc[4096], mpiexec[4096];
        snprintf(mpicc, sizeof(mpicc), "%s/mpicc.%s", dir, vendor);
        snprintf(mpiexec, sizeof(mpiexec), "%s/mpiexec.%s", dir, vendor);
        found = access(mpicc, X_OK) == 0 && access(mpiexec, X_OK) == 0;
    }
    free(copy);
    return found;
}

void ib_peers_open(struct ib_peers *p, const struct ib_driver *d, const char *const *sources)
{
    bool compiled = false;
    *p = (struct ib_peers){0};
    if (d->no_peers)
        return;
    const bool ready = peers_prepare(p, d);
    for (int i = 0; i < IB_PEERS; i++) {
        const struct known *k = &known[i];
        const bool same = i > 0 && strcmp(known[i - 1].vendor, k->vendor) == 0;
        char why[192];
        if (!library_is_installed(k->vendor)) {
            snprintf(why, sizeof(why), "mpicc.%s and mpiexec.%s are not installed.", k->vendor, k->vendor);
            peers_report_missing(p, k->name, why);
            continue;
        }
        compiled = same ? compiled : ready && peers_compile(p, k->vendor, sources);
        if (!compiled) {
            peers_report_missing(p, k->name,
                                 ready ? "mpicc cannot compile the benchmark."
                                       : "this installation has no softib or no sources in share/fishplate.");
            continue;
        }
        struct ib_peer *peer = &p->library[p->n++];
        *peer = (struct ib_peer){.name = k->name, .options = k->options, .settings = k->settings, .all = p};
        snprintf(peer->mpiexec, sizeof(peer->mpiexec), "mpiexec.%s", k->vendor);
        snprintf(peer->program, sizeof(peer->program), "%s/%s", p->folder, k->vendor);
    }
}

void ib_peers_close(struct ib_peers *p)
{
    DIR *dir = p->folder[0] ? opendir(p->folder) : NULL;
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        if (e->d_name[0] != '.')
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) {
        closedir(dir);
        rmdir(p->folder);
    }
}

/* Sets SOFTIB_FABRIC from the argument of mpiexec -hcas; a part without a name is a rate. */
static void peers_set_fabric(const struct ib_job *job)
{
    char words[512], *copy = strdup(job->hcas ? job->hcas : ""), *save = NULL;
    int n = snprintf(words, sizeof(words), "nodes=%d name=peers-%d", job->nodes, (int)getpid());
    for (char *w = strtok_r(copy, ",", &save); w && n < 400; w = strtok_r(NULL, ",", &save))
        n += snprintf(words + n, sizeof(words) - (size_t)n, " %s%.64s", strchr(w, '=') ? "" : "rate=", w);
    free(copy);
    setenv("SOFTIB_FABRIC", words, 1);
}

static int peers_add_words(char *text, char **argv, int n)
{
    for (char *save = NULL, *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
        if (n < IB_WORDS - 1)
            argv[n++] = w;
    return n;
}

void ib_peer_exec(const struct ib_job *job, char *args)
{
    static char node[] = "SOFTIB_NODE=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} exec \"$0\" \"$@\"";
    const struct ib_peer *peer = job->peer;
    char ranks[16], errors[sizeof(peer->all->folder) + 16], *argv[IB_WORDS], *save = NULL;
    snprintf(ranks, sizeof(ranks), "%d", job->ranks);
    snprintf(errors, sizeof(errors), "%s/errors", peer->all->folder);
    char *front[] = {"timeout", "-k", "5", LIMIT, (char *)peer->all->softib, "run", (char *)peer->mpiexec,
                     "-n",      ranks};
    char *back[] = {"sh", "-c", node, (char *)peer->program, "rank", (char *)job->topic};
    int n = sizeof(front) / sizeof(front[0]);
    memcpy(argv, front, sizeof(front));
    n = peers_add_words(strdup(peer->options), argv, n);
    memcpy(&argv[n], back, sizeof(back));
    n = peers_add_words(args, argv, n + (int)(sizeof(back) / sizeof(back[0])));
    argv[n] = NULL;
    for (char *w = strtok_r(strdup(peer->settings), " ", &save); w; w = strtok_r(NULL, " ", &save))
        putenv(w);
    peers_set_fabric(job);
    int fd = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    execvp(argv[0], argv);
    _exit(127);
}

void ib_peers_report_failure(const struct ib_peer *peer)
{
    struct ib_peers *p = peer->all;
    char why[128], path[sizeof(p->folder) + 16], line[512], said[80] = "";
    snprintf(path, sizeof(path), "%s/errors", p->folder);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (line[0] > ' ' && line[0] != '-' && !said[0])
            snprintf(said, sizeof(said), "%.*s", (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
    snprintf(why, sizeof(why), "its job failed%s%s", said[0] ? ": " : "", said);
    peers_report_missing(p, peer->name, why);
}
