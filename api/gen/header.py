# Writes mpi.h: the MPI 5.0 standard ABI's types and values, and the prototypes of MPI_* and PMPI_*.
#
# SPDX-License-Identifier: Apache-2.0

from .text import make_banner, wrap_prototype

# Types that the ABI leaves out because they depend on Fortran's INTEGER; C programs need them for interoperability with Fortran.
FORTRAN_TYPES = """\
/* Fortran interoperability: outside the ABI, INTEGER is taken to be a C int. */
typedef int MPI_Fint;
typedef struct {
    MPI_Fint MPI_SOURCE;
    MPI_Fint MPI_TAG;
    MPI_Fint MPI_ERROR;
    MPI_Fint MPI_internal[5];
} MPI_F08_status;
"""

FORTRAN_DATA = """\
extern MPI_Fint *MPI_F_STATUS_IGNORE;
extern MPI_Fint *MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *MPI_F08_STATUS_IGNORE;
extern MPI_F08_status *MPI_F08_STATUSES_IGNORE;
"""

STATUS = """\
typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
"""


EXTENSION_KINDS = ("error-class-extension", "attribute-key-extension")

# MPICH declares these names in mpi.h, Open MPI in mpi-ext.h; programs for both must find them.
EXTENSIONS = """\
/* MPIX_ names are beyond the standard. A program that wants none of them defines FISHPLATE_STANDARD_ONLY. */
#ifndef FISHPLATE_STANDARD_ONLY
#include "mpi-ext.h"
#endif
"""


def write_header(api, version):
    """Returns the text of mpi.h; version is (major, minor, patch)."""
    parts = [
        make_banner("The MPI 5.0 standard ABI (version 1.0) as the Fishplate library provides it."),
        "#ifndef FISHPLATE_MPI_H\n#define FISHPLATE_MPI_H\n",
        "#include <stdint.h>\n",
        _make_versions(api, version),
        '#if defined(__cplusplus)\nextern "C" {\n#endif\n',
        _make_types(api),
        _make_constants(api),
        _make_prototypes(api),
        "#if defined(__cplusplus)\n}\n#endif\n",
        EXTENSIONS,
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def write_extensions(api):
    """Returns the text of mpi-ext.h: extensions of the standard."""
    constants = [_make_define(c.name, c.value) for c in api.constants if c.kind in EXTENSION_KINDS]
    unprefixed = [_make_define(c.name.replace("MPIX", "MPI", 1), c.name) for c in api.constants if c.kind == EXTENSION_KINDS[0]]
    lines = [wrap_prototype(f.prototype(prefix)) + ";" for prefix in ("", "P") for f in api.functions if f.is_extension]
    parts = [
        make_banner("What Fishplate offers beyond the MPI standard: fault tolerance (ULFM, as proposed to the MPI Forum), a query for CUDA."),
        "#ifndef FISHPLATE_MPI_EXT_H\n#define FISHPLATE_MPI_EXT_H\n",
        "#include <mpi.h>\n",
        "/* What programs ask before they use it; the second name is the one they ask Open MPI by. */",
        _make_define("FISHPLATE_HAVE_FT", "1"),
        _make_define("OMPI_HAVE_MPI_EXT_FTMPI", "1") + "\n",
        "\n".join(constants) + "\n",
        "/* Buffers may be in memory of CUDA; MPIX_Query_cuda_support returns 0 where FISHPLATE_GPU=off. */",
        _make_define("MPIX_CUDA_AWARE_SUPPORT", "1") + "\n",
        "/* As Open MPI has them too. */",
        "\n".join(unprefixed) + "\n",
        '#if defined(__cplusplus)\nextern "C" {\n#endif\n',
        "\n".join(lines) + "\n",
        "#if defined(__cplusplus)\n}\n#endif\n",
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def _make_versions(api, version):
    major, minor, patch = version
    lines = [_make_define(c.name, c.value) for c in api.constants if c.kind == "version-macro"]
    lines += [
        "",
        "/* 10000 * major + 100 * minor + patch */",
        _make_define("FISHPLATE_NUMVERSION", str(10000 * major + 100 * minor + patch)),
        _make_define("FISHPLATE_VERSION", f'"{major}.{minor}.{patch}"'),
    ]
    return "\n".join(lines) + "\n"


def _make_types(api):
    lines = []
    of_kind = {}
    for c in api.constants:
        of_kind.setdefault(c.kind, []).append(c)
    lines += [f"typedef {c.ctype} {c.name};" for c in of_kind["type/integer"]]
    lines += ["", STATUS]
    for kind in ("type/opaque-handle", "type/opaque-handle-tools"):
        lines += [f"typedef {c.ctype}{c.name};" for c in of_kind[kind]]
        lines += [""]
    for c in of_kind["type/enum"]:
        lines += _make_enum(api, c)
    lines += [f"typedef {c.ctype} {c.name}{c.value};" for c in of_kind["type/callback-function"]]
    lines += [""]
    lines += [f"typedef {c.ctype} {c.name};" for c in of_kind["type/alias"]]
    lines += ["", FORTRAN_TYPES]
    return "\n".join(lines)


def _make_enum(api, ctype):
    members = [f"    {c.name} = {c.value}" for c in api.constants if c.ctype == ctype.name]
    return [f"typedef {ctype.ctype} {{", ",\n".join(members), f"}} {ctype.name};", ""]


def _make_constants(api):
    enums = {c.name for c in api.constants if c.kind == "type/enum"}
    lines = []
    previous = None
    for c in api.constants:
        if _is_type_or_text(c) or c.ctype in enums or c.kind in EXTENSION_KINDS:
            continue
        if c.kind != previous:
            lines += ["", f"/* {c.kind} */"]
            previous = c.kind
        lines.append(_make_define(c.name, _constant_value(c)))
    return "\n".join(lines) + "\n"


def _is_type_or_text(constant):
    return constant.kind.split("/")[0] in (
        "type", "status-layout", "version-macro", "fortran-constant", "info-key", "abi-rule")


def _constant_value(constant):
    if constant.ctype == "int":
        return f"({constant.value})" if constant.value.startswith("-") else constant.value
    return f"(({constant.ctype}){constant.value})"


def _make_define(name, value):
    return f"#define {name:<31} {value}"


def _make_prototypes(api):
    lines = ["/* The MPI interface */", FORTRAN_DATA]
    for prefix in ("", "P"):
        if prefix:
            lines += ["", "/* The profiling interface: the same functions under the names a tool calls */"]
        for f in (f for f in api.functions if not f.is_extension):
            lines.append(wrap_prototype(f.prototype(prefix)) + ";")
    return "\n".join(lines) + "\n"
