/* names.c: publishes names as files in a folder (names.h). A file is created atomically (link) and states its
 * publisher: if the publisher has ended without unpublishing the name, the name is free again.
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
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/ownfile.h"
#include "base/tunable.h"
#include "dyn/port.h"
#include "obj/proc.h"

static TUNABLE_STRING(
    folder_choice, "NAME_DIR",
    "Folder for names that MPI_Publish_name publishes, made if it is not there. Only its owner may have "
    "access to it. Default: one in /tmp for this user; name one that all hosts see where servers and "
    "clients run on different hosts.");

#define FILE_MAX (MPI_MAX_PORT_NAME + 512)
/* Attempts to publish a name: another process may remove the empty folder at the same time. */
#define FOLDER_TRIES 1000

#define HEX_SIZE (2 * SHA256_SIZE + 1)

struct name {
    struct list link;
    char file[HEX_SIZE];
};

#define MACHINE_SIZE 64

/* The process that published a name: machine and process-id namespace, process id, start time. */
struct owner {
    char machine[MACHINE_SIZE];
    long pid;
    unsigned long long started;
};

static void folder_path(char *path, size_t size)
{
    if (*folder_choice.text)
        snprintf(path, size, "%s", folder_choice.text);
    else
        snprintf(path, size, "/tmp/fishplate-names-%u", (unsigned)geteuid());
}

/* Opens the user's folder of published names. Returns a descriptor, or -1 with errno. All other functions
 * access files relative to this descriptor, so that the checked folder is used even if other users rename
 * folders. */
static int folder_open(bool create)
{
    char path[PATH_MAX];
    folder_path(path, sizeof(path));
    return ownfile_open_folder(path, create);
}

static int folder_failed(int error)
{
    char path[PATH_MAX];
    folder_path(path, sizeof(path));
    if (error == EPERM || error == ENOTDIR)
        return err_set(MPI_ERR_ACCESS,
                       "%s is not a folder of this user to which nobody else has access (chmod 700), so no "
                       "names are published or looked up there; FISHPLATE_NAME_DIR names another folder",
                       path);
    return err_set(MPI_ERR_ACCESS, "the folder of published names %s cannot be used: %s", path,
                   strerror(error));
}

static int write_failed(int error)
{
    char path[PATH_MAX];
    folder_path(path, sizeof(path));
    return err_set(MPI_ERR_OTHER, "the name cannot be written to the folder %s: %s", path, strerror(error));
}

static void service_file_name(const char *service, char file[HEX_SIZE])
{
    uint8_t digest[SHA256_SIZE];
    struct sha256 s;
    sha256_init(&s);
    sha256_add(&s, service, strlen(service));
    sha256_end(&s, digest);
    for (int i = 0; i < SHA256_SIZE; i++)
        snprintf(file + 2 * i, 3, "%02x", digest[i]);
}

/* Identifies where a process id is valid: the boot of the machine and the process-id namespace. */
static void get_machine_id(char out[MACHINE_SIZE])
{
    char boot[40] = "unknown", space[24] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && fgets(boot, sizeof(boot), f))
        boot[strcspn(boot, "\n")] = '\0';
    if (f)
        fclose(f);
    const ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    space[MAX(n, 0)] = '\0'; /* "pid:[4026531836]" */
    snprintf(out, MACHINE_SIZE, "%s%s", boot, space);
}

/* Returns the start time of a process in clock ticks; 0 if there is no such process. */
static unsigned long long process_start_time(long pid)
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

/* True if the publisher may still be running. A process on another machine counts as running, because it
 * cannot be checked here. */
static bool is_owner_alive(const struct owner *o)
{
    char machine[MACHINE_SIZE];
    get_machine_id(machine);
    return strcmp(machine, o->machine) != 0 || process_start_time(o->pid) == o->started;
}

/* Reads the publisher and the port from a name file. Returns false if the file has another format. */
static bool file_read(int fd, struct owner *o, char *port)
{
    char text[FILE_MAX + 1];
    const ssize_t n = pread(fd, text, FILE_MAX, 0);
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

/* Returns 0 or an errno. */
static int file_write(int folder, const char *file, const char *port)
{
    char text[FILE_MAX], machine[MACHINE_SIZE];
    get_machine_id(machine);
    const int len = snprintf(text, sizeof(text), "fishplate-name 1 %s %ld %llu\n%s\n", machine,
                             (long)getpid(), process_start_time(getpid()), port);
    const int fd = ownfile_create(folder, file, O_WRONLY);
    if (fd < 0)
        return errno;
    const ssize_t n = write(fd, text, (size_t)len);
    const int error = n == (ssize_t)len ? 0 : n < 0 ? errno : ENOSPC;
    close(fd);
    if (error)
        unlinkat(folder, file, 0);
    return error;
}

static bool is_same_file(int fd, int folder, const char *file)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && fstatat(folder, file, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Removes the file of a publisher that has ended. Returns false if the publisher is running. Two processes
 * may do this for the same name: each locks the file and checks again, so that the second does not remove
 * a new file that the first has created. */
static bool file_remove_stale(int folder, const char *file)
{
    char port[MPI_MAX_PORT_NAME];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct owner o;
    const int fd = ownfile_open(folder, file, O_RDWR);
    bool runs = false;
    if (fd < 0)
        return errno == ENOENT || unlinkat(folder, file, 0) == 0;
    if (fcntl(fd, F_OFD_SETLKW, &lock) == 0 && is_same_file(fd, folder, file)) {
        runs = file_read(fd, &o, port) && is_owner_alive(&o);
        if (!runs)
            unlinkat(folder, file, 0);
    }
    close(fd);
    return !runs;
}

/* Returns 0, EEXIST (a running process has published the name) or another errno. */
static int publish_in_folder(int folder, const char *file, const char *port)
{
    char fresh[HEX_SIZE + 32];
    uint64_t number; /* random: process ids are not unique in a folder shared by hosts */
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return EAGAIN;
    snprintf(fresh, sizeof(fresh), "%s.%016llx", file, (unsigned long long)number);
    int error = file_write(folder, fresh, port);
    if (error)
        return error;
    do
        error = linkat(folder, fresh, folder, file, 0) == 0 ? 0 : errno;
    while (error == EEXIST && file_remove_stale(folder, file));
    unlinkat(folder, fresh, 0);
    return error;
}

int name_publish(struct proc *p, const char *service, const char *port)
{
    struct dyn *d = dyn_get_state(p);
    struct name *name = d ? calloc(1, sizeof(*name)) : NULL;
    if (!name)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot publish a name");
    service_file_name(service, name->file);
    int rc = 0, error = ENOENT;
    for (int tries = 0; !rc && error == ENOENT && tries < FOLDER_TRIES; tries++) {
        const int folder = folder_open(true);
        if (folder >= 0) {
            error = publish_in_folder(folder, name->file, port);
            close(folder);
        } else if (errno != ENOENT) {
            rc = folder_failed(errno);
        }
    }
    if (!rc && error)
        rc = error == EEXIST
                 ? err_set(MPI_ERR_SERVICE,
                           "the name \"%.100s\" is published already, by a process that is running", service)
                 : write_failed(error);
    if (rc)
        free(name);
    else
        list_append(&d->names, &name->link);
    return rc;
}

static void name_free(struct name *name)
{
    char path[PATH_MAX];
    const int folder = folder_open(false);
    if (folder >= 0) {
        unlinkat(folder, name->file, 0);
        close(folder);
    }
    list_remove(&name->link);
    free(name);
    folder_path(path, sizeof(path));
    if (!*folder_choice.text)
        rmdir(path); /* fails if the folder contains other names */
}

int name_unpublish(struct proc *p, const char *service, const char *port)
{
    char file[HEX_SIZE];
    service_file_name(service, file);
    if (p->dyn)
        list_foreach(pos, &p->dyn->names)
        {
            struct name *name = list_entry(pos, struct name, link);
            if (strcmp(name->file, file) == 0) {
                name_free(name);
                return 0;
            }
        }
    return err_set(MPI_ERR_SERVICE, "this process has not published the name \"%.100s\"", service);
}

/* Returns 0 or an errno. */
static int lookup_in_folder(int folder, const char *file, char *port)
{
    char found[MPI_MAX_PORT_NAME];
    struct owner o;
    const int fd = ownfile_open(folder, file, O_RDONLY);
    if (fd < 0)
        return errno;
    const bool good = file_read(fd, &o, found) && is_owner_alive(&o);
    close(fd);
    if (good)
        strcpy(port, found);
    return good ? 0 : ENOENT;
}

int name_lookup(struct proc *p, const char *service, char *port)
{
    char path[PATH_MAX], file[HEX_SIZE];
    const int folder = folder_open(false);
    int error = errno;
    if (folder < 0 && error != ENOENT)
        return folder_failed(error);
    if (folder >= 0) {
        service_file_name(service, file);
        error = lookup_in_folder(folder, file, port);
        close(folder);
    }
    folder_path(path, sizeof(path));
    return error ? err_set(MPI_ERR_NAME,
                           "no running process of this user has published the name \"%.100s\" (folder %s)",
                           service, path)
                 : 0;
}

void names_close(struct dyn *d)
{
    list_foreach_safe(pos, after, &d->names) name_free(list_entry(pos, struct name, link));
}
