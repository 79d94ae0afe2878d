/* devnode.c: a preload library for machines without /dev/infiniband. UCX checks for a character device
 * file there before it opens a device. The device file of softib's devices is "../null"; this library
 * resolves that path although the folder does not exist.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

static const char *devnode_real_path(const char *path)
{
    return path && !strcmp(path, "/dev/infiniband/../null") ? "/dev/null" : path;
}

API int access(const char *path, int mode)
{
    int (*next)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");
    return next(devnode_real_path(path), mode);
}

API int stat(const char *path, struct stat *st)
{
    int (*next)(const char *, struct stat *) = (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");
    return next(devnode_real_path(path), st);
}

API int stat64(const char *path, struct stat64 *st)
{
    int (*next)(const char *, struct stat64 *) =
        (int (*)(const char *, struct stat64 *))dlsym(RTLD_NEXT, "stat64");
    return next(devnode_real_path(path), st);
}
