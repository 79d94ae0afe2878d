/* generate.c: texts that the build makes from the table of options: completion for bash and zsh, and the
 * manual page mpiexec(1).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "options/generate.h"

#include <stdio.h>
#include <string.h>

#include "options/optdefs.h"

/* The next of several names; returns where the one after it begins, NULL after the last. */
static const char *copy_next_name(const char *names, char *out, size_t size)
{
    size_t len = strcspn(names, "|");
    snprintf(out, size, "%.*s", (int)len, names);
    return names[len] ? names + len + 1 : NULL;
}

static bool takes_argument(const struct optdef *d)
{
    return d->arg == ARG_ONE || d->arg == ARG_NAME_VALUE;
}

/* " -n -np": the names of all documented options, or only of those with a value. */
static void print_names(bool with_word)
{
    char name[64];
    for (unsigned i = 0; i < noptdefs; i++)
        for (const char *p = optdefs[i].names;
             p && optdefs[i].help && (!with_word || takes_argument(&optdefs[i]));) {
            p = copy_next_name(p, name, sizeof(name));
            printf(" -%s", name);
        }
}

/* The lines of a case statement that completes the value of an option. */
static void print_bash_values(const struct optdef *d)
{
    char name[64];
    const char *p = d->names;
    printf("    ");
    for (bool first = true; p; first = false) {
        p = copy_next_name(p, name, sizeof(name));
        printf("%s-%s|--%s", first ? "" : "|", name, name);
    }
    if (strcmp(d->values, "@file") == 0)
        puts(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;");
    else if (strcmp(d->values, "@dir") == 0)
        puts(") COMPREPLY=($(compgen -d -- \"$cur\")); return ;;");
    else
        printf(") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", d->values);
}

static void print_bash(void)
{
    puts("# bash completion for Fishplate's mpiexec, made from its table of options.\n"
         "_fishplate_mpiexec()\n"
         "{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i word");
    printf("    local names=\"");
    print_names(false);
    printf("\"\n    local with_word=\"");
    print_names(true);
    puts(" \"\n"
         "    COMPREPLY=()\n"
         "    # The first word that is not an option, nor belongs to one, is the program.\n"
         "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        word=${COMP_WORDS[i]}\n"
         "        [[ $word == -?* ]] || break\n"
         "        word=${word#-}\n"
         "        word=-${word#-}\n"
         "        [[ $with_word == *\" $word \"* ]] && ((i++))\n"
         "    done\n"
         "    if ((i < COMP_CWORD)); then\n"
         "        if declare -F _command_offset >/dev/null; then\n"
         "            _command_offset $i\n"
         "        else\n"
         "            COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "        fi\n"
         "        return\n"
         "    fi\n"
         "    case $prev in");
    for (unsigned i = 0; i < noptdefs; i++)
        if (optdefs[i].values)
            print_bash_values(&optdefs[i]);
    puts("    esac\n"
         "    if ((i > COMP_CWORD)); then\n"
         "        return # a value that nothing is known about\n"
         "    elif [[ $cur == --* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"${names// -/ --}\" -- \"$cur\"))\n"
         "    elif [[ $cur == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$names\" -- \"$cur\"))\n"
         "    else\n"
         "        COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
         "    fi\n"
         "}\n"
         "complete -o filenames -F _fishplate_mpiexec mpiexec mpirun");
}

/* Characters that _arguments gives a meaning to. */
static void print_escaped(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *text))
            putchar('\\');
        putchar(*text);
    }
}

static void print_zsh(void)
{
    char name[64];
    puts("#compdef mpiexec mpirun\n"
         "# zsh completion for Fishplate's mpiexec, made from its table of options.\n"
         "_arguments -S \\");
    for (unsigned i = 0; i < noptdefs; i++)
        for (const char *p = optdefs[i].names; p && optdefs[i].help;) {
            const struct optdef *d = &optdefs[i];
            p = copy_next_name(p, name, sizeof(name));
            printf("  '*-");
            print_escaped(name, "[]:?\\");
            printf("[");
            print_escaped(d->help, "[]:\\");
            printf("]");
            if (takes_argument(d)) {
                printf(":");
                print_escaped(d->metavar, "[]:\\");
                printf(":");
                if (d->values && d->values[0] == '@')
                    printf("%s", strcmp(d->values, "@dir") == 0 ? "_files -/" : "_files");
                else if (d->values)
                    printf("(%s)", d->values);
            }
            puts("' \\");
        }
    puts("  '*::program:_normal'");
}

/* Prints a line of roff with dashes and leading dots escaped. */
static void print_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
    }
}

static void print_man_option(const struct optdef *d)
{
    char name[64];
    puts(".TP");
    for (const char *p = d->names; p;) {
        p = copy_next_name(p, name, sizeof(name));
        fputs("\\fB\\-", stdout);
        print_roff(name);
        printf("\\fR%s", p ? ", " : "");
    }
    if (d->metavar) {
        fputs(d->arg == ARG_MAYBE ? "[=\\fI" : " \\fI", stdout);
        print_roff(d->metavar);
        fputs(d->arg == ARG_MAYBE ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    print_roff(d->help);
    puts(".");
}

static void print_man(void)
{
    printf(".TH MPIEXEC 1 \"\" \"Fishplate %s\" \"Fishplate\"\n", FISHPLATE_VERSION);
    puts(".SH NAME\nmpiexec, mpirun \\- start an MPI program as several processes\n"
         ".SH SYNOPSIS\n.B mpiexec\n[\\fIoptions\\fR] \\fIprogram\\fR [\\fIarguments\\fR] "
         "[\\fB:\\fR [\\fIoptions\\fR] \\fIprogram\\fR [\\fIarguments\\fR]]...\n"
         ".SH DESCRIPTION\n"
         "Starts the ranks of a job on this machine or on others, carries their input, output and signals, "
         "and leaves\n"
         "nothing behind. Without \\fB\\-n\\fR there is one rank for each slot of the hosts, or for each "
         "core of this\n"
         "machine. Several programs in one job are separated by colons.\n"
         ".SH OPTIONS\nAn option may be written with one dash or two, and as \\fB\\-name value\\fR or "
         "\\fB\\-name=value\\fR.");
    for (unsigned i = 0; i < noptdefs; i++)
        if (optdefs[i].help)
            print_man_option(&optdefs[i]);
    puts(".SH EXIT STATUS\n"
         "That of the first rank that failed; 128 plus the number of the signal when it was killed by one; "
         "124 after\n"
         "\\fB\\-timeout\\fR; 141 when nobody reads standard output any more; 1 when output was lost; 2 for "
         "a mistake on\n"
         "the command line; 126 and 127 when a program cannot be run or found.\n"
         ".SH ENVIRONMENT\n"
         ".TP\n\\fBFISHPLATE_WORLD_RANK\\fR, \\fBFISHPLATE_WORLD_SIZE\\fR, \\fBFISHPLATE_LOCAL_RANK\\fR, "
         "\\fBFISHPLATE_LOCAL_SIZE\\fR\nSet for each rank: its number and the number of ranks, in the job "
         "and on its node.\n"
         ".TP\n\\fBMPIEXEC_TIMEOUT\\fR\nTime limit of the job in seconds, as \\fB\\-timeout\\fR.\n"
         ".TP\n\\fBFISHPLATE_INIT_TIMEOUT\\fR\nSeconds after which mpiexec reports the ranks or hosts that "
         "have not started.\n"
         ".SH EXAMPLES\n.nf\nmpiexec \\-n 4 ./program\nmpiexec \\-n 8 \\-hosts n1,n2 ./program\n"
         "mpiexec \\-n 1 ./master : \\-n 7 ./worker\nmpiexec \\-n 8 \\-vnodes 4 ./program\n"
         "mpiexec \\-n 2 \\-vnodes 2 \\-hcas 1GB/s,250MB/s ./program\n.fi");
}

bool generate_document(const char *what)
{
    if (strcmp(what, "bash") == 0)
        print_bash();
    else if (strcmp(what, "zsh") == 0)
        print_zsh();
    else if (strcmp(what, "man") == 0)
        print_man();
    else
        return false;
    return true;
}
