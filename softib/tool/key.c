/* key.c: softib key: writes a new key for a fabric with wire=tcp into a file that only its owner can read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/key.h"
#include "tool.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

int cmd_key(char **argv)
{
    uint8_t key[KEY_BYTES];
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
        fprintf(stderr, "softib: cannot get random numbers from the kernel (getrandom): %s\n",
                strerror(errno));
        return 1;
    }
    /* An existing key is not replaced. */
    int fd = open(argv[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        fprintf(stderr, "softib: cannot write %s: %s\n", argv[0], strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < sizeof(key); i++)
        dprintf(fd, "%02x", key[i]);
    bool ok = dprintf(fd, "\n") == 1 && !fsync(fd);
    if (close(fd) || !ok) {
        fprintf(stderr, "softib: cannot write %s: %s\n", argv[0], strerror(errno));
        unlink(argv[0]);
        return 1;
    }
    return 0;
}
