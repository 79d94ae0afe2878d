/* test_sha256.c: SHA-256 with the examples of FIPS 180-4 ("abc", two blocks, a million a), HMAC-SHA-256
 * with those of RFC 4231, hashing in parts, and the comparison of secrets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdlib.h>

#include "test.h"

static const char *sha256_hex(const uint8_t *bytes)
{
    static char text[2 * SHA256_SIZE + 1];
    for (int i = 0; i < SHA256_SIZE; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    return text;
}

static const char *sha256_digest(const void *data, size_t len)
{
    struct sha256 s;
    uint8_t out[SHA256_SIZE];
    sha256_init(&s);
    sha256_add(&s, data, len);
    sha256_end(&s, out);
    return sha256_hex(out);
}

static void test_published_digests(void)
{
    /* 56 bytes: the length needs another block */
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    EXPECT_STR(sha256_digest("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_STR(sha256_digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_STR(sha256_digest(two, strlen(two)),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    EXPECT_STR(sha256_digest(million, 1000000),
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* Hashing 200 bytes in two parts gives the same result for every cut. */
static void test_hashing_in_parts(void)
{
    uint8_t data[200];
    char whole[2 * SHA256_SIZE + 1];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t len = 0; len <= sizeof(data); len++) {
        strcpy(whole, sha256_digest(data, len));
        for (size_t cut = 0; cut <= len; cut++) {
            struct sha256 s;
            uint8_t out[SHA256_SIZE];
            sha256_init(&s);
            sha256_add(&s, data, cut);
            sha256_add(&s, data + cut, len - cut);
            sha256_end(&s, out);
            if (strcmp(sha256_hex(out), whole) != 0)
                printf("%zu bytes, hashed in two parts cut at byte %zu: wrong digest\n", len, cut);
            EXPECT_STR(sha256_hex(out), whole);
        }
    }
}

struct test_rfc4231 {
    const char *key, *data; /* a string of one byte is repeated key_len or data_len times */
    size_t key_len, data_len;
    const char *code;
};

static void test_rfc4231(void)
{
    static const struct test_rfc4231 cases[] = {
        {"\x0b", "Hi There", 20, 0, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", "what do ya want for nothing?", 0, 0,
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {"\xaa", "\xdd", 20, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {"\xaa", "Test Using Larger Than Block-Size Key - Hash Key First", 131, 0,
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {"\xaa",
         "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
         "to "
         "be hashed before being used by the HMAC algorithm.",
         131, 0, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct test_rfc4231 *c = &cases[i];
        uint8_t key[256], data[256], out[SHA256_SIZE];
        size_t key_len = c->key_len ? c->key_len : strlen(c->key);
        size_t data_len = c->data_len ? c->data_len : strlen(c->data);
        if (c->key_len)
            memset(key, c->key[0], key_len);
        else
            memcpy(key, c->key, key_len);
        if (c->data_len)
            memset(data, c->data[0], data_len);
        else
            memcpy(data, c->data, data_len);
        hmac_sha256(key, key_len, data, data_len, out);
        EXPECT_STR(sha256_hex(out), c->code);
        /* Hashes byte by byte with a copy of the state that was initialised with the key. */
        struct hmac_sha256 keyed, each;
        hmac_sha256_init(&keyed, key, key_len);
        each = keyed;
        for (size_t k = 0; k < data_len; k++)
            hmac_sha256_add(&each, data + k, 1);
        hmac_sha256_end(&each, out);
        EXPECT_STR(sha256_hex(out), c->code);
    }
}

/* RFC 4231, case 4: a key of 1, 2, ... 25. Case 5 is a code cut to 16 bytes. */
static void test_rfc4231_more(void)
{
    uint8_t key[25], data[50], out[SHA256_SIZE];
    char start[33];
    for (int i = 0; i < 25; i++)
        key[i] = (uint8_t)(i + 1);
    memset(data, 0xcd, sizeof(data));
    hmac_sha256(key, sizeof(key), data, sizeof(data), out);
    EXPECT_STR(sha256_hex(out), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(key, 0x0c, 20);
    hmac_sha256(key, 20, "Test With Truncation", 20, out);
    snprintf(start, sizeof(start), "%.32s", sha256_hex(out));
    EXPECT_STR(start, "a3b6167473100ee06e0c796c2955552b");
}

static void test_comparison_of_secrets(void)
{
    uint8_t a[32] = {1, 2, 3}, b[32] = {1, 2, 3};
    EXPECT(secret_equal(a, b, sizeof(a)));
    for (size_t i = 0; i < sizeof(a); i++) {
        b[i] ^= 0x80;
        EXPECT(!secret_equal(a, b, sizeof(a)));
        b[i] ^= 0x80;
    }
    EXPECT(secret_equal(a, b, 0));
    secret_wipe(a, sizeof(a));
    for (size_t i = 0; i < sizeof(a); i++)
        EXPECT_EQ(a[i], 0);
}

int main(void)
{
    TEST_RUN(test_published_digests);
    TEST_RUN(test_hashing_in_parts);
    TEST_RUN(test_rfc4231);
    TEST_RUN(test_rfc4231_more);
    TEST_RUN(test_comparison_of_secrets);
    return test_result();
}
