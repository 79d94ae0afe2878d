/* fuzz.h: what fuzz targets share. A target is one function of bytes, LLVMFuzzerTestOneInput, driven by libFuzzer
 * or by driver.c. It may use anything but the network and files, and must leave nothing behind that the next input
 * sees.
 *
 * Code under test that ends the process with a sentence (die, err_panic, ib_fatal) has made its point: the linker
 * replaces that function by one that calls fuzz_refused, and the target goes on with the next input.
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

/* A property that does not hold: both drivers report the input that shows it. */
#define FUZZ_CHECK(cond)                                                        \
    do {                                                                        \
        if (!(cond)) {                                                          \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                            \
        }                                                                       \
    } while (0)

/* if (setjmp(fuzz_end) == 0) { ... } */
static jmp_buf fuzz_end __attribute__((unused));

static inline _Noreturn void fuzz_refused(void)
{
    longjmp(fuzz_end, 1);
}

/* Reads an input from front to back; what is not there is zero. */
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

/* A copy of exactly the rest or n bytes of it, so that reading beyond is seen; the caller frees it. */
static inline char *fuzz_copy(struct fuzz_in *in, size_t n, size_t *len)
{
    *len = n < in->left ? n : in->left;
    char *copy = malloc(*len ? *len : 1);
    if (!copy)
        abort();
    fuzz_bytes(in, copy, *len);
    return copy;
}

/* The same, terminated. */
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
