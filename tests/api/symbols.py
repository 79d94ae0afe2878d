#!/usr/bin/env python3
# Compares what the library exports with functions.tsv: a weak MPI_X and a strong PMPI_X for every row, at the same
# address, the four Fortran status variables, the entry point of the `fishplate` tool, and nothing else. The library must not call
# MPI functions itself, since a profiling tool would see the calls, and is linked with no other library, in particular not libibverbs.
#
# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

BESIDE = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE",
          "fishplate_inside"}


def read_expected_names(path):
    names = set()
    with open(path, encoding="ascii") as table:
        for line in table:
            if line.strip() and not line.startswith("#"):
                cells = line.split("\t")
                if "removed-3.0" not in cells[4]:
                    names.add(cells[0])
    return names


def read_exported_symbols(library):
    """Returns {name: (address, type letter of nm)}."""
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {name: (address, letter) for address, letter, name in (line.split() for line in text.splitlines())}


def read_soname(library):
    text = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    return next(line.split("[")[1].rstrip("]") for line in text.splitlines() if "SONAME" in line)


def list_needed_libraries(library):
    """Returns the needed libraries other than those of libc and, under a sanitizer, of the compiler."""
    text = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    needed = {line.split("[")[1].rstrip("]") for line in text.splitlines() if "NEEDED" in line}
    own = ("libc.", "ld-", "libm.", "libpthread.", "libdl.", "librt.", "libgcc_s.", "libatomic.", "libasan.", "libubsan.", "libtsan.")
    return sorted(name for name in needed if not name.startswith(own))


def find_own_calls(library, names):
    """Returns the MPI functions with relocations: calls through them would reach a profiling tool's replacements."""
    text = subprocess.run(["readelf", "-rW", library], check=True, capture_output=True, text=True).stdout
    words = set(text.split())
    return sorted(symbol for name in names for symbol in (name, "P" + name) if symbol in words)


def find_problems(names, symbols):
    for name in sorted(names):
        for symbol, letter in ((name, "W"), ("P" + name, "T")):
            if symbol not in symbols:
                yield f"{symbol} is not exported"
            elif symbols[symbol][1] != letter:
                yield f"{symbol} has type {symbols[symbol][1]} instead of {letter}"
        if name in symbols and "P" + name in symbols and symbols[name][0] != symbols["P" + name][0]:
            yield f"{name} and P{name} differ"
    for symbol in sorted(symbols.keys() - names - {"P" + name for name in names} - BESIDE):
        yield f"{symbol} is exported, but is not in the table"
    for symbol in sorted(BESIDE - symbols.keys()):
        yield f"{symbol} is not exported"


def main():
    table, library = sys.argv[1:3]
    names = read_expected_names(table)
    found = list(find_problems(names, read_exported_symbols(library)))
    if read_soname(library) != "libmpi_abi.so.1":
        found.append(f"the SONAME is {read_soname(library)}")
    found += [f"the library is linked with {name}; load it instead" for name in list_needed_libraries(library)]
    found += [f"the library itself calls {symbol}" for symbol in find_own_calls(library, names)]
    print(f"{len(names)} functions compared, {len(found)} problems", *found, sep="\n")
    return 1 if found else 0


sys.exit(main())
