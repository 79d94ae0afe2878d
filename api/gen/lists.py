# Writes the list of functions (api_list.*) and the linker's export list, and checks that each function has an implementation: a definition
# of impl_X at column 0.
#
# SPDX-License-Identifier: Apache-2.0

import re
from pathlib import Path

from .impl import list_implemented
from .text import make_banner

# Exported symbols other than MPI functions: Fortran's addresses of MPI_STATUS_IGNORE and similar constants, and the entry point of the
# `fishplate` tool (src/api/inside.h).
BESIDE_FUNCTIONS = ["MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE",
                    "fishplate_inside"]

DEFINITION = re.compile(r"^\w[\w *]*?\bimpl_(\w+)\([^;{]*\)\s*\{", re.MULTILINE)


def find_implementations(folder):
    """Returns the short names of the functions that the .c files below the folder define."""
    found = set()
    for path in sorted(Path(folder).rglob("*.c")):
        found.update(DEFINITION.findall(path.read_text()))
    return found


def check_names(api, implemented):
    """Returns error messages about definitions without a table row and about functions without a definition."""
    known = {f.short for f in list_implemented(api)}
    wanted = {(f.base or f).short for f in api.functions if not f.is_conversion}
    return ([f"impl_{name} is defined and MPI_{name} is not in functions.tsv" for name in sorted(implemented - known)] +
            [f"MPI_{name} is in functions.tsv and impl_{name} is not defined" for name in sorted(wanted - implemented)])


def write_list_header(api):
    return make_banner("The list of MPI functions, for `fishplate info --api` and for tests.") + f"""
#ifndef FISHPLATE_API_LIST_H
#define FISHPLATE_API_LIST_H

#define API_LIST_SIZE {len(api.functions)}

struct api_entry {{
    const char *name;
    const char *chapter;
    const char *since; /* the version of the standard that introduced it */
}};

extern const struct api_entry api_list[API_LIST_SIZE];

#endif
"""


def write_list(api):
    lines = [make_banner("The list of MPI functions: see api_list.h."), '#include "api_list.h"\n',
             "const struct api_entry api_list[API_LIST_SIZE] = {"]
    for f in api.functions:
        lines.append(f'    {{"{f.name}", "{f.chapter}", "{f.since}"}},')
    return "\n".join(lines) + "\n};\n"


def write_exports(api):
    """Returns a linker version script without a version name, since the ABI's symbols are unversioned."""
    names = [f"        {prefix}{f.name};" for f in api.functions for prefix in ("", "P")]
    data = [f"        {name};" for name in ("MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE",
                                            "MPI_F08_STATUSES_IGNORE")]
    data.append("        fishplate_inside;")  # entry point of the `fishplate` tool (src/api/inside.h)
    return "\n".join([make_banner("What libmpi_abi.so exports; everything else stays inside.") + "{", "    global:", *names,
                      *data, "    local: *;", "};"]) + "\n"
