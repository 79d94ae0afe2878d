#!/usr/bin/env python3
# Writes a C program that calls every function which the library does not implement yet and expects
# MPI_ERR_UNSUPPORTED_OPERATION with a message that names it. Arguments: functions.tsv, the generated api_list.c.
#
# SPDX-License-Identifier: Apache-2.0

import re
import sys


def missing(list_file):
    with open(list_file, encoding="ascii") as text:
        return {m[1] for m in re.finditer(r'\{"(\w+)", .*, false\}', text.read())}


def calls(table, names):
    """Every argument is 0: no argument may be looked at, and 0 converts to all their types."""
    with open(table, encoding="ascii") as text:
        for line in text:
            cells = line.split("\t")
            if cells[0] in names and cells[1].startswith("int ") and not cells[0].endswith("_toint"):
                arguments = cells[1][cells[1].index("(") + 1:-1]
                count = 0 if arguments == "void" else arguments.count(",") + 1
                yield f'    check("{cells[0]}", {cells[0]}({", ".join(["0"] * count)}));'


def main():
    print("""/* Written by tests/api/unsupported.py. */
#include <mpi.h>
#include <string.h>

#include "expect.h"

static void check(const char *function, int rc)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (rc != MPI_ERR_UNSUPPORTED_OPERATION)
        printf("%s:\\n", function);
    EXPECT_EQ(rc, MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Error_string(rc, text, &length);
    if (!strstr(text, function))
        printf("%s: the message is: %s\\n", function, text);
    EXPECT(strstr(text, function));
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    (void)check;""")
    print("\n".join(calls(sys.argv[1], missing(sys.argv[2]))))
    print("    MPI_Finalize();\n    return expect_done();\n}")


main()
