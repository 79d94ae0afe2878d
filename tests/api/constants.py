#!/usr/bin/env python3
# Writes a C program that compares mpi.h with constants.tsv, row by row: values, sizes, layout, callback signatures. The script reads the
# table without the generator, so that an error of the generator is detected.
#
# SPDX-License-Identifier: Apache-2.0

import sys

SKIPPED = {"info-key", "abi-rule", "fortran-constant"}  # not in a C header


def read_rows(path):
    with open(path, encoding="ascii") as table:
        for line in table:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def make_assertions(name, kind, ctype, value):
    """Returns the (declarations, run-time checks) of a row."""
    if kind == "type/integer":
        size = "sizeof(void *)" if ctype == "intptr_t" else "8"
        return [f"_Static_assert(sizeof({name}) == {size}, \"size of {name}\");",
                f"_Static_assert(({name})-1 < 0, \"{name} is signed\");"], []
    if kind == "status-layout" and ctype == "struct":
        return ["_Static_assert(sizeof(MPI_Status) == 32, \"size of MPI_Status\");",
                "_Static_assert(_Alignof(MPI_Status) == 4, \"alignment of MPI_Status\");"], []
    if kind == "status-layout":
        field = name.split(".")[1]
        return [f"_Static_assert(offsetof(MPI_Status, {field}) == {value.split('=')[1]}, \"{name}\");"], []
    if kind.startswith("type/opaque-handle"):
        return [f"extern {ctype}same_{name};", f"extern {name} same_{name};"], []
    if kind == "type/enum":
        return [f"extern {ctype} same_{name};", f"extern {name} same_{name};",
                f"_Static_assert(sizeof({name}) == 4, \"size of {name}\");"], []
    if kind == "type/callback-function":
        return [f"extern {ctype} same_{name}{value};", f"extern {name} same_{name};"], []
    if kind == "type/alias":
        return [f"extern {ctype} same_{name};", f"extern {name} same_{name};"], []
    if ctype == "int" or ctype in ("MPI_Offset", "MPI_T_cb_safety", "MPI_T_source_order"):
        return [f"_Static_assert({name} == {value}, \"{name}\");"], _macro_checks(name, kind)
    checks = [f"check(\"{name}\", (intptr_t){name}, {value});"]
    return [f"static {ctype} value_{name};"], [f"value_{name} = {name};", f"check_used(&value_{name});"] + checks


def _macro_checks(name, kind):
    """Returns checks that a version number can be used in #if."""
    return [f"#if {name} < 0\n#error\n#endif"] if kind == "version-macro" else []


def main():
    table = sys.argv[1]
    declarations, checks = [], []
    for name, kind, ctype, value in read_rows(table):
        if kind.split("/")[0] in SKIPPED:
            continue
        more_declarations, more_checks = make_assertions(name, kind, ctype, value)
        declarations += more_declarations
        checks += more_checks
    print("/* Written by tests/api/constants.py. */")
    print("#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n")
    print("\n".join(declarations))
    print("""
static int failures, checked;

static void check(const char *name, intptr_t found, intptr_t wanted)
{
    checked++;
    if (found == wanted)
        return;
    failures++;
    printf("%s is %#lx, the table has %#lx\\n", name, (unsigned long)found, (unsigned long)wanted);
}

static void check_used(const void *variable)
{
    (void)variable;
}

int main(void)
{""")
    print("\n".join("    " + line for line in checks))
    print('    printf("%d handles and pointers compared at run time, %d differ\\n", checked, failures);')
    print("    return failures != 0;\n}")


main()
