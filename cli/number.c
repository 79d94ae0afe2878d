/* number.c: parses and prints numbers and sizes, and sorts values (number.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool number_parse_integer(const char *text, long minimum, long maximum, long *out)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (errno || end == text || *end || isspace((unsigned char)*text) || value < minimum || value > maximum)
        return false;
    *out = value;
    return true;
}

bool number_parse_real(const char *text, double minimum, double maximum, double *out)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)*text) || !(value >= minimum && value <= maximum))
        return false;
    *out = value;
    return true;
}

bool number_size(const char *text, size_t length, size_t *out)
{
    static const char units[] = "bkmg";
    size_t value = 0, i = 0;
    for (; i < length && isdigit((unsigned char)text[i]); i++)
        value = value * 10 + (size_t)(text[i] - '0');
    if (i == 0 || i > 10 || length - i > 1)
        return false;
    if (i < length) {
        const char *unit = memchr(units, tolower((unsigned char)text[i]), sizeof(units) - 1);
        if (!unit)
            return false;
        value <<= 10 * (unit - units);
    }
    if (value > NUMBER_SIZE_MAX)
        return false;
    *out = value;
    return true;
}

bool number_sizes(const char *text, size_t *list, int room, int *count)
{
    int n = 0;
    while (*text) {
        const size_t length = strcspn(text, ",");
        if (n == room || !number_size(text, length, &list[n]))
            return false;
        n++;
        text += length + (text[length] == ',');
    }
    *count = n;
    return n > 0;
}

void number_print_size(size_t bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB"};
    int unit = 0;
    while (unit < 2 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 32, "%zu %s", bytes, units[unit]);
}

static int number_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void number_sort(double *values, size_t n)
{
    if (n > 0)
        qsort(values, n, sizeof(*values), number_compare);
}

double number_median(double *values, size_t n)
{
    number_sort(values, n);
    if (n == 0)
        return 0;
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
