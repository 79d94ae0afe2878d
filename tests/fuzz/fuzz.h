/* fuzz.h: the framework of the fuzz targets. A target is one function of bytes, LLVMFuzzerTestOneInput,
 * called by libFuzzer or by driver.c. It must not use the network or files, and must leave no state that
 * the next input could see. Code under test that ends the process with an error message (die, err_panic,
 * ib_fatal) has refused the input: the linker replaces that function by one that calls fuzz_refused, and
 * the target continues with the next input.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FUZZ_H
#define FP_FUZZ_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts if the property does not hold: both drivers then report the input. */
#define FUZZ_CHECK(cond)                                                        \
    do {                                                                        \
        if (!(cond)) {                                                          \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                            \
        }                                                                       \
    } while (0)

/* Usage: if (setjmp(fuzz_end) == 0) { ... } */
static jmp_buf fuzz_end __attribute__((unused));

static inline _Noreturn void fuzz_refused(void)
{
    longjmp(fuzz_end, 1);
}

/* Reads an input from front to back; bytes after its end are zero. */
struct fuzz_in {
    const uint8_t *at;
    size_t left;
};

static inline size_t fuzz_bytes(struct fuzz_in *in, void *out, size_t n)
{
    size_t have = n < in->left ? n : in->left;
    memset(out, 0, n);
    if (have)
        memcpy(out, in->at, have);
    in->at += have;
    in->left -= have;
    return have;
}

static inline uint8_t fuzz_u8(struct fuzz_in *in)
{
    uint8_t v;
    fuzz_bytes(in, &v, 1);
    return v;
}

static inline uint16_t fuzz_u16(struct fuzz_in *in)
{
    uint16_t v;
    fuzz_bytes(in, &v, 2);
    return v;
}

/* Returns a copy of the next n bytes, or of the rest, in memory of exactly that size, so that a sanitizer
 * detects reads past the end. The caller frees the copy. */
static inline char *fuzz_copy(struct fuzz_in *in, size_t n, size_t *len)
{
    *len = n < in->left ? n : in->left;
    char *copy = malloc(*len ? *len : 1);
    if (!copy)
        abort();
    fuzz_bytes(in, copy, *len);
    return copy;
}

/* Returns a copy of the bytes with a terminating zero. The caller frees the copy. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
