/* options.c: parses command lines by a table of options, and prints the help text (options.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <string.h>

#include "number.h"

/* The length of the name in "-h|--help" that the word begins with, up to its end or an equals sign; 0: none. */
static size_t match_name(const char *names, const char *word)
{
    for (size_t length; *names; names += length + (names[length] == '|')) {
        length = strcspn(names, "|");
        if (strncmp(names, word, length) == 0 && (word[length] == 0 || word[length] == '='))
            return length;
    }
    return 0;
}

static const struct cli_option *option_find(const struct cli_option *options, const char *word,
                                            size_t *length)
{
    for (const struct cli_option *o = options; o->names; o++)
        if ((*length = match_name(o->names, word)) > 0)
            return o;
    return NULL;
}

/* Returns the name that messages show: the last one. */
static const char *option_shown_name(const struct cli_option *o)
{
    const char *bar = strrchr(o->names, '|');
    return bar ? bar + 1 : o->names;
}

static bool is_optional(const struct cli_option *o)
{
    return o->value && o->value[0] == '[';
}

static bool read_choice(const struct cli_option *o, const char *value, int *out)
{
    for (int i = 0; o->words[i]; i++)
        if (strcmp(o->words[i], value) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool option_store_value(const struct cli_option *o, const char *value, void *structure)
{
    void *to = (char *)structure + o->to;
    long whole;
    size_t size;
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)to = true;
        return true;
    case CLI_TEXT:
        *(const char **)to = value;
        return *value != 0;
    case CLI_INT:
        if (!number_parse_integer(value, (long)o->minimum, (long)o->maximum, &whole))
            return false;
        *(int *)to = (int)whole;
        return true;
    case CLI_REAL:
        return number_parse_real(value, o->minimum, o->maximum, to);
    case CLI_SIZE:
        if (!number_size(value, strlen(value), &size) || (double)size < o->minimum ||
            (double)size > o->maximum)
            return false;
        *(size_t *)to = size;
        return true;
    case CLI_CHOICE:
        return read_choice(o, value, to);
    case CLI_CALL:
        return o->call(structure, value);
    }
    return false;
}

static void print_bounds(const struct cli_option *o)
{
    if (o->kind == CLI_INT || o->kind == CLI_REAL)
        fprintf(stderr, " It must be a%s number from %.12g to %.12g.", o->kind == CLI_INT ? " whole" : "",
                o->minimum, o->maximum);
    if (o->kind == CLI_SIZE)
        fprintf(stderr, " It must be a size such as 64, 64k or 4M.");
    if (o->kind == CLI_CALL && o->help)
        fprintf(stderr, " Example: %s%s%s (%s).", option_shown_name(o), is_optional(o) ? "" : " ", o->value,
                o->help);
    if (o->kind == CLI_CHOICE)
        fputs(" It must be one of:", stderr);
    for (int i = 0; o->kind == CLI_CHOICE && o->words[i]; i++)
        fprintf(stderr, " %s", o->words[i]);
}

static int reject_value(const struct cli *c, const struct cli_option *o, const char *word, const char *value)
{
    const int length = (int)strcspn(word, "=");
    if (c->silent)
        return CLI_INVALID;
    if (!value)
        fprintf(stderr, "%s: %.*s needs a value: %s.", c->program, length, word, o->value);
    else if (o->value)
        fprintf(stderr, "%s: the value of '%.*s' is invalid: '%s'.", c->program, length, word, value);
    else
        fprintf(stderr, "%s: %.*s has no value.", c->program, length, word);
    if (value && o->value)
        print_bounds(o);
    fputs(" --help explains.\n", stderr);
    return CLI_INVALID;
}

static int reject_word(const struct cli *c, const char *word)
{
    if (c->silent)
        return CLI_INVALID;
    if (c->operands)
        fprintf(stderr, "%s: '%s' is neither an option nor %s; --help lists both.\n", c->program, word,
                c->operands);
    else
        fprintf(stderr, "%s: '%s' is not an option; --help lists them.\n", c->program, word);
    return CLI_INVALID;
}

int cli_parse(const struct cli *c, int argc, char **argv, void *to)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        size_t length = 0;
        const struct cli_option *o = option_find(c->options, word, &length);
        if (!o && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0))
            return CLI_HELP;
        if (!o && strcmp(word, "--") == 0)
            return i + 1;
        if (!o && c->stops && (word[0] != '-' || !word[1]))
            return i;
        if (!o && (word[0] == '-' || !c->operand || !c->operand(to, word)))
            return reject_word(c, word);
        if (!o)
            continue;
        if (word[length] == '=')
            value = word + length + 1;
        else if (is_optional(o))
            value = "";
        else if (o->value && i + 1 < argc)
            value = argv[++i];
        if (!o->value != !value || !option_store_value(o, value ? value : "", to))
            return reject_value(c, o, word, value);
    }
    return argc;
}

/* ---- The help text ---- */

enum { WIDTH = 80, COLUMN_MAX = 24 };

/* Prints an option and its value, such as "--sizes 8,64k", unless `out` is NULL. Returns the length. */
static int print_name(const struct cli_option *o, FILE *out)
{
    const char *name = option_shown_name(o);
    if (out)
        fprintf(out, "  %s%s%s", name, o->value && !is_optional(o) ? " " : "", o->value ? o->value : "");
    return 2 + (int)strlen(name) + (o->value ? !is_optional(o) + (int)strlen(o->value) : 0);
}

/* Prints words from `column` on, where the first line has got to. */
static void print_words(const char *text, const char *end, int column, FILE *out)
{
    int at = column;
    while (text < end) {
        const int length = (int)strcspn(text, " \n");
        if (at > column && at + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(out, "%s%.*s", at > column ? " " : "", length, text);
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

void cli_print_text(const char *text, int at, int column, FILE *out)
{
    if (at + 2 > column) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", column - at, "");
    print_words(text, text + strlen(text), column, out);
}

/* Returns the column at which a line continues: that of the second column of a list, else its indentation. */
static int find_column(const char *line, int length)
{
    const int indentation = (int)strspn(line, " ");
    for (int i = indentation; indentation > 0 && i + 2 < length; i++)
        if (line[i] == ' ' && line[i + 1] == ' ')
            return i + (int)strspn(line + i, " ");
    return indentation;
}

void cli_print_page(const char *text, FILE *out)
{
    for (int length; *text; text += length + (text[length] == '\n')) {
        length = (int)strcspn(text, "\n");
        const int column = length <= WIDTH ? length : find_column(text, length);
        fprintf(out, "%.*s", column, text);
        print_words(text + column, text + length, column, out);
    }
}

void cli_print_options(const struct cli_option *options, FILE *out)
{
    int column = 12;
    for (const struct cli_option *o = options; o->names; o++) {
        const int length = o->help ? print_name(o, NULL) + 2 : 0;
        if (length > column && length <= COLUMN_MAX)
            column = length;
    }
    for (const struct cli_option *o = options; o->names; o++)
        if (o->help)
            cli_print_text(o->help, print_name(o, out), column, out);
    cli_print_text("this text", fprintf(out, "  --help"), column, out);
}
