/* key.c: reads the key of a fabric and derives other keys from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/key.h"
#include "base/base.h"
#include <ctype.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct hmac_sha256 keyed;
static uint64_t fabric_id;
static struct sip datagrams;

static int key_hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0'
           : c >= 'a' && c <= 'f'    ? c - 'a' + 10
           : c >= 'A' && c <= 'F'    ? c - 'A' + 10
                                     : -1;
}

bool key_parse(const char *text, uint8_t key[KEY_BYTES])
{
    for (int i = 0; i < 2 * KEY_BYTES; i++) {
        int d = key_hex_digit(text[i]); /* key_hex_digit returns -1 at the terminator */
        if (d < 0)
            return false;
        key[i / 2] = (uint8_t)(key[i / 2] << 4 | d);
    }
    text += 2 * KEY_BYTES;
    return !text[strspn(text, " \t\r\n")];
}

static bool read_file(const char *path, uint8_t key[KEY_BYTES], char *err, size_t errlen)
{
    char text[128] = "";
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st)) {
        snprintf(err, errlen, "cannot read the key of the fabric from %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool private = S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
    ssize_t n = private ? read(fd, text, sizeof(text) - 1) : 0;
    close(fd);
    bool good = n > 0 && key_parse(text, key);
    secret_wipe(text, sizeof(text));
    if (!private)
        snprintf(err, errlen,
                 "%s holds the key of the fabric, so it must be your own file and readable by you alone: "
                 "chmod 600 %s",
                 path, path);
    else if (!good)
        snprintf(err, errlen,
                 "%s does not hold a key: 32 hexadecimal digits, as \"softib key FILE\" writes them", path);
    return private && good;
}

bool key_read(uint8_t key[KEY_BYTES], char *err, size_t errlen)
{
    const char *text = getenv("SOFTIB_KEY"), *path = getenv("SOFTIB_KEY_FILE"), *home = getenv("HOME");
    char own[4096];
    if (text) {
        bool good = key_parse(text, key);
        if (!good)
            snprintf(err, errlen, "SOFTIB_KEY is not 32 hexadecimal digits");
        return good;
    }
    if (path)
        return read_file(path, key, err, errlen);
    snprintf(own, sizeof(own), "%s/.softib.key", home ? home : "");
    if (home && !access(own, F_OK))
        return read_file(own, key, err, errlen);
    snprintf(err, errlen,
             "wire=tcp needs a secret key that all nodes of the fabric share: write one with \"softib key "
             "~/.softib.key\" and copy it to the other nodes, or set SOFTIB_KEY or SOFTIB_KEY_FILE");
    return false;
}

void key_derive(const char *purpose, uint8_t out[SHA256_SIZE])
{
    struct hmac_sha256 h = keyed;
    hmac_sha256_add(&h, purpose, strlen(purpose) + 1);
    hmac_sha256_add(&h, &fabric_id, sizeof(fabric_id));
    hmac_sha256_end(&h, out);
}

void key_set_fabric_key(const uint8_t key[KEY_BYTES], uint64_t fabric)
{
    uint8_t code[SHA256_SIZE];
    hmac_sha256_init(&keyed, key, KEY_BYTES);
    fabric_id = htobe64(fabric);
    key_derive("softib datagrams", code);
    sip_begin(&datagrams, code);
    secret_wipe(code, sizeof(code));
}

void key_proof(enum key_side side, const uint8_t *hello, size_t hello_len, const uint8_t caller[NONCE_BYTES],
               const uint8_t called[NONCE_BYTES], uint8_t out[SHA256_SIZE])
{
    struct hmac_sha256 h = keyed;
    const char *label = side == KEY_CALLER ? "softib caller" : "softib called";
    hmac_sha256_add(&h, label, strlen(label) + 1);
    hmac_sha256_add(&h, &fabric_id, sizeof(fabric_id));
    hmac_sha256_add(&h, hello, hello_len);
    hmac_sha256_add(&h, caller, NONCE_BYTES);
    hmac_sha256_add(&h, called, NONCE_BYTES);
    hmac_sha256_end(&h, out);
}

void key_copy_siphash(struct sip *s)
{
    *s = datagrams;
}
