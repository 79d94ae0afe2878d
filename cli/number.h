/* number.h: numbers on command lines. Every function returns false, and leaves the output alone, unless the whole text is a
 * number within its bounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CLI_NUMBER_H
#define FP_CLI_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

bool number_parse_integer(const char *text, long minimum, long maximum, long *out);
bool number_parse_real(const char *text, double minimum, double maximum, double *out);

/* number_size() parses `length` characters: "64", "64k", "4M", "1G", "8b", in units of 1024. */
enum { NUMBER_SIZE_MAX = 1 << 30 };
bool number_size(const char *text, size_t length, size_t *out);
/* Parses a list such as "8,64k": at most `room` sizes, at least one. */
bool number_sizes(const char *text, size_t *list, int room, int *count);
/* Formats a size: "64 KiB". */
void number_print_size(size_t bytes, char out[32]);

void number_sort(double *values, size_t n);
/* Sorts the values and returns their median; 0 if n is 0. */
double number_median(double *values, size_t n);

#endif
