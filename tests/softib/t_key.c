/* t_key.c: authentication between machines: SipHash returns its published test values, a seal is valid
 * only for its packet and only once, and a key is read only from permitted places.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include "net/frame.h"
#include "net/key.h"
#include "net/seal.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_vectors(void)
{
    static const struct {
        size_t n;
        uint64_t code;
    } want[] = {{0, 0x726fdb47dd0e0e31ull}, {1, 0x74f839c593dc67fdull}, {15, 0xa129ca6149be45e5ull}};
    uint8_t key[16], in[64];
    struct sip s;
    for (unsigned i = 0; i < 64; i++)
        in[i] = (uint8_t)i;
    memcpy(key, in, 16);
    for (unsigned i = 0; i < 3; i++) {
        sip_begin(&s, key);
        sip_add(&s, in, want[i].n);
        EXPECT(sip_end(&s) == want[i].code);
    }
    for (size_t cut = 0; cut <= 64; cut++) { /* hashing in two parts gives the same value */
        struct sip t;
        sip_begin(&s, key);
        sip_begin(&t, key);
        sip_add(&s, in, 64);
        sip_add(&t, in, cut);
        sip_add(&t, in + cut, 64 - cut);
        EXPECT(sip_end(&s) == sip_end(&t));
    }
}

static bool seal_is_new(uint64_t instance, uint64_t number, uint32_t slot)
{
    uint8_t seal[SEAL_BYTES], head[FRAME_BYTES] = {0};
    seal_create(instance, number, head, NULL, 0, seal);
    return seal_is_valid(seal, head, NULL, 0) && seal_is_not_replayed(seal, 3, slot);
}

static void test_seals(void)
{
    uint8_t seal[SEAL_BYTES], head[FRAME_BYTES] = {1, 2, 3}, payload[100] = {4, 5, 6};
    struct iovec iov[2] = {{payload, 33}, {payload + 33, 67}};
    seal_create(9, 1, head, iov, 2, seal);
    EXPECT(seal_is_valid(seal, head, payload, 100));
    for (unsigned i = 0; i < 100; i++) {
        payload[i] ^= 1;
        EXPECT(!seal_is_valid(seal, head, payload, 100));
        payload[i] ^= 1;
        seal[i % SEAL_BYTES] ^= 0x80;
        EXPECT(!seal_is_valid(seal, head, payload, 100));
        seal[i % SEAL_BYTES] ^= 0x80;
    }
    EXPECT(!seal_is_valid(seal, head, payload, 99));
    EXPECT(seal_is_new(1, 10, 1) && !seal_is_new(1, 10, 1) && seal_is_new(1, 9, 1) && !seal_is_new(1, 9, 1) &&
           seal_is_new(1, 10, 2));
    EXPECT(seal_is_new(1, 8000, 1) && seal_is_new(1, 11, 1) && !seal_is_new(1, 11, 1) &&
           seal_is_new(1, 100000, 1));
    EXPECT(!seal_is_new(1, 8000, 1) && !seal_is_new(1, 90000, 1) && seal_is_new(1, 99999, 1));
    /* A new process in slot 1: later datagrams of the former process are refused. */
    EXPECT(seal_is_new(2, 1, 1) && !seal_is_new(1, 100001, 1) && seal_is_new(2, 2, 1));
    /* A third process: late packets of the first and second process do not replace its state. */
    EXPECT(seal_is_new(3, 1, 1) && !seal_is_new(1, 100002, 1) && !seal_is_new(2, 3, 1) &&
           seal_is_new(3, 2, 1) && !seal_is_new(3, 1, 1));
    for (uint32_t s = 1; s < 1000; s++)
        EXPECT(seal_is_new(7, 1, s + 5) && !seal_is_new(7, 1, s + 5));
}

static void test_sources(void)
{
    uint8_t key[KEY_BYTES], want[KEY_BYTES];
    char err[5000], path[] = "/tmp/softib-key-XXXXXX";
    memset(want, 0xa5, sizeof(want));
    unsetenv("SOFTIB_KEY");
    unsetenv("SOFTIB_KEY_FILE");
    setenv("HOME", "/nonexistent", 1);
    EXPECT(!key_read(key, err, sizeof(err)) && strstr(err, "softib key"));
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && write(fd, "a5a5A5a5a5a5a5a5a5a5a5a5a5a5a5a5\n", 33) == 33);
    setenv("SOFTIB_KEY_FILE", path, 1);
    EXPECT(key_read(key, err, sizeof(err)) && !memcmp(key, want, sizeof(key)));
    fchmod(fd, 0640);
    EXPECT(!key_read(key, err, sizeof(err)) && strstr(err, "chmod 600"));
    fchmod(fd, 0600);
    EXPECT(!ftruncate(fd, 20) && !key_read(key, err, sizeof(err)) && strstr(err, "32 hexadecimal"));
    close(fd);
    unlink(path);
    EXPECT(!key_read(key, err, sizeof(err)) && strstr(err, path));
    setenv("SOFTIB_KEY", "0123", 1);
    EXPECT(!key_read(key, err, sizeof(err)));
    setenv("SOFTIB_KEY", "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5", 1);
    EXPECT(key_read(key, err, sizeof(err)) && !memcmp(key, want, sizeof(key)));
}

int main(void)
{
    uint8_t key[KEY_BYTES] = {1};
    key_set_fabric_key(key, 5);
    test_vectors();
    test_seals();
    test_sources();
    return failures != 0;
}
