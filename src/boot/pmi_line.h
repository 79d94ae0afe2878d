/* pmi_line.h: one line of the PMI-1 protocol: `key=value` words and a newline. The client in this folder and
 * the server in launcher/ share it, so that both refuse the same bad bytes. It depends on libc alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PMI_LINE_H
#define FP_BOOT_PMI_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMI_LINE_MAX  (1u << 20) /* a node map of a very large job is the longest line we make */
#define PMI_WORDS_MAX 24
#define PMI_KEY_MAX   64   /* what we announce, terminator included */
#define PMI_VALUE_MAX 1024 /* what we announce, terminator included */
#define PMI_CHUNK     900  /* the longest value we send: Slurm's lines end at 1024 bytes */

struct pmi_line {
    unsigned n;
    struct {
        const char *key, *value;
    } word[PMI_WORDS_MAX];
};

/*
 * Splits `text` (terminated, without the newline, written to) into words. Words without `=` are skipped,
 * as foreign servers put free text in messages. False for an empty key, a control character or too
 * many words; *out is then undefined.
 */
bool pmi_line_parse(char *text, struct pmi_line *out);

/* The first value of that key, or NULL. */
const char *pmi_line_get(const struct pmi_line *line, const char *key);

/* A decimal number in that range; false when the key is missing or the value is anything else. */
bool pmi_line_int(const struct pmi_line *line, const char *key, long min, long max, long *out);

/* Percent-encodes free text into one word; the result is cut to fit and always terminated. */
void pmi_escape(const char *text, char *out, size_t size);

/* Undoes pmi_escape in place, whatever bytes come out. */
void pmi_unescape_all(char *text);

/* The same for text that is printed: bytes that are not printable become '?', except newline. */
void pmi_unescape(char *text);

#endif
