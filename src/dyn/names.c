/* names.c: see names.h. A file appears whole or not at all (link), and belongs to the process that it names:
 * when that process has ended without unpublishing it, the name is free again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dyn/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tunable.h"
#include "dyn/port.h"
#include "obj/proc.h"

static TUNABLE_STRING(
    folder_choice, "NAME_DIR",
    "Folder for names that MPI_Publish_name publishes, made if it is not there. Only its owner may have "
    "access to it. Default: one in /tmp for this user; name one that all hosts see where servers and "
    "clients run on different hosts.");

#define FILE_MAX (MPI_MAX_PORT_NAME + 512)

struct name {
    struct list link;
    char path[PATH_MAX];
};

/* A process as a name's file has it: the machine, its number there, and when it was started. */
struct owner {
    char machine[64];
    long pid;
    unsigned long long started;
};

static const char *folder(char *room, size_t size)
{
    if (*folder_choice.text)
        snprintf(room, size, "%s", folder_choice.text);
    else
        snprintf(room, size, "/tmp/fishplate-names-%u", (unsigned)getuid());
    return room;
}

/* Somebody else's folder under that name would hand out keys, or take them. */
static int folder_check(const char *path)
{
    struct stat s;
    if (lstat(path, &s) != 0)
        return err_set(MPI_ERR_ACCESS, "the folder of published names %s cannot be used: %s", path,
                       strerror(errno));
    if (!S_ISDIR(s.st_mode) || s.st_uid != getuid() || (s.st_mode & 077) != 0)
        return err_set(
            MPI_ERR_ACCESS,
            "%s is not a folder that only this user can look into (chmod 700), so names are not kept there; "
            "FISHPLATE_NAME_DIR names another one",
            path);
    return 0;
}

static int path_of(const char *service, const char *suffix, char *out, size_t size)
{
    uint8_t digest[SHA256_SIZE];
    char dir[PATH_MAX / 2], hex[2 * SHA256_SIZE + 1];
    struct sha256 s;
    sha256_init(&s);
    sha256_add(&s, service, strlen(service));
    sha256_end(&s, digest);
    for (int i = 0; i < SHA256_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    int n = snprintf(out, size, "%s/%s%s", folder(dir, sizeof(dir)), hex, suffix);
    return n > 0 && (size_t)n < size ? 0 : err_set(MPI_ERR_ARG, "FISHPLATE_NAME_DIR is too long");
}

static void this_machine(char *out, size_t size)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f || !fgets(out, (int)size, f))
        snprintf(out, size, "unknown");
    out[strcspn(out, "\n")] = '\0';
    if (f)
        fclose(f);
}

/* When a process was started, in ticks; 0: there is no such process. */
static unsigned long long start_of(long pid)
{
    char path[64], line[1024] = "";
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    const char *at = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
    fclose(f);
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Elsewhere nobody can tell, so it is believed to live. */
static bool owner_lives(const struct owner *o)
{
    char machine[64];
    this_machine(machine, sizeof(machine));
    return strcmp(machine, o->machine) != 0 || start_of(o->pid) == o->started;
}

/* The file of a name: who published it, then the port. False: there is none, or it is no such file. */
static bool read_file(const char *path, struct owner *o, char *port)
{
    char text[FILE_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, FILE_MAX);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    char *line = strchr(text, '\n');
    if (!line || sscanf(text, "fishplate-name 1 %63s %ld %llu", o->machine, &o->pid, &o->started) != 3)
        return false;
    line++;
    line[strcspn(line, "\n")] = '\0';
    if (strlen(line) >= MPI_MAX_PORT_NAME)
        return false;
    strcpy(port, line);
    return true;
}

static int write_file(const char *path, const char *port)
{
    char text[FILE_MAX], machine[64];
    this_machine(machine, sizeof(machine));
    int len = snprintf(text, sizeof(text), "fishplate-name 1 %s %ld %llu\n%s\n", machine, (long)getpid(),
                       start_of(getpid()), port);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = fd >= 0 && write(fd, text, (size_t)len) == (ssize_t)len;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (good)
        return 0;
    if (fd >= 0)
        unlink(path);
    return err_set(MPI_ERR_OTHER, "the name cannot be written to %s: %s", path, strerror(why));
}

static int taken(const char *service)
{
    return err_set(MPI_ERR_SERVICE, "the name \"%.100s\" is published already, by a process that is running",
                   service);
}

/* One that was left by a process that has ended makes room. */
static int link_file(const char *from, const char *path, const char *service)
{
    char port[MPI_MAX_PORT_NAME];
    for (int tries = 0; tries < 3; tries++) {
        struct owner o;
        if (link(from, path) == 0)
            return 0;
        if (errno != EEXIST)
            return err_set(MPI_ERR_OTHER, "the name cannot be written to %s: %s", path, strerror(errno));
        if (read_file(path, &o, port) && owner_lives(&o))
            return taken(service);
        unlink(path);
    }
    return taken(service);
}

int name_publish(struct proc *p, const char *service, const char *port)
{
    char dir[PATH_MAX / 2], fresh[PATH_MAX], suffix[32];
    struct dyn *d = dyn_of(p);
    struct name *name = d ? calloc(1, sizeof(*name)) : NULL;
    if (!name)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot publish a name");
    snprintf(suffix, sizeof(suffix), ".%ld", (long)getpid());
    mkdir(folder(dir, sizeof(dir)), 0700); /* or it is there */
    int rc = folder_check(dir);
    rc = rc ? rc : path_of(service, "", name->path, sizeof(name->path));
    rc = rc ? rc : path_of(service, suffix, fresh, sizeof(fresh));
    rc = rc ? rc : write_file(fresh, port);
    if (rc == 0) {
        rc = link_file(fresh, name->path, service);
        unlink(fresh);
    }
    if (rc)
        free(name);
    else
        list_append(&d->names, &name->link);
    return rc;
}

static void name_free(struct name *name)
{
    char dir[PATH_MAX / 2];
    unlink(name->path);
    list_remove(&name->link);
    free(name);
    if (!*folder_choice.text)
        rmdir(folder(dir, sizeof(dir))); /* the last one takes the folder along */
}

int name_unpublish(struct proc *p, const char *service, const char *port)
{
    char path[PATH_MAX];
    int rc = path_of(service, "", path, sizeof(path));
    (void)port;
    if (rc == 0 && p->dyn)
        list_foreach(pos, &p->dyn->names)
        {
            struct name *name = list_entry(pos, struct name, link);
            if (strcmp(name->path, path) == 0) {
                name_free(name);
                return 0;
            }
        }
    return rc ? rc : err_set(MPI_ERR_SERVICE, "this process has not published the name \"%.100s\"", service);
}

int name_lookup(struct proc *p, const char *service, char *port)
{
    char dir[PATH_MAX / 2], path[PATH_MAX], found[MPI_MAX_PORT_NAME];
    struct owner o;
    (void)p;
    int rc = path_of(service, "", path, sizeof(path));
    if (rc == 0 && access(folder(dir, sizeof(dir)), F_OK) == 0)
        rc = folder_check(dir);
    if (rc)
        return rc;
    if (!read_file(path, &o, found) || !owner_lives(&o))
        return err_set(MPI_ERR_NAME,
                       "no running process of this user has published the name \"%.100s\" (looked in %s)",
                       service, dir);
    strcpy(port, found);
    return 0;
}

void names_close(struct dyn *d)
{
    list_foreach_safe(pos, after, &d->names) name_free(list_entry(pos, struct name, link));
}
