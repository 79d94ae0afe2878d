# Writes impl.h: the implementation functions behind the API, one for each pair MPI_X, MPI_X_c. The rules that
# turn a prototype into an implementation's signature live here and nowhere else (README.md states them).
#
# SPDX-License-Identifier: Apache-2.0

from .model import HANDLES
from .text import banner, wrap_prototype

PLAIN, HANDLE, SCALAR, VECTOR, OUTPUT = "plain", "handle", "scalar", "vector", "output"


def mode(f, p):
    """How a parameter of MPI_X travels to impl_X; f is the narrow function, whose twin (if any) widens it."""
    if p.handle and p.kind != "raw":
        return HANDLE
    twin = wide_param(f, p)
    if twin is None or twin.base == p.base:
        return PLAIN
    if p.is_value:
        return SCALAR
    return VECTOR if p.is_array else OUTPUT


def wide_param(f, p):
    """The parameter of the large-count twin at the same place."""
    return f.wide.params[f.params.index(p)] if f.wide else None


def declare(f, p):
    """One parameter of the implementation function."""
    how = mode(f, p)
    if how == HANDLE:
        return f"struct {p.handle} *{p.name}"
    if how == VECTOR:
        return f"struct ivec {p.name}"
    if how in (SCALAR, OUTPUT):
        return wide_param(f, p).declare()
    return p.text.removeprefix("const ") if p.is_value else p.text


def prototype(f):
    params = ", ".join(declare(f, p) for p in f.params) or "void"
    return f"{f.returns} impl_{f.short}({params})"


def owners(api):
    """The functions that have an implementation of their own."""
    return [f for f in api.functions if f.base is None and not f.is_conversion]


def write_impl(api):
    structs = "\n".join(f"struct {name};" for name in sorted(HANDLES.values()))
    parts = [
        banner("The implementation functions that the API's wrappers call with checked arguments."),
        "#ifndef FISHPLATE_IMPL_H\n#define FISHPLATE_IMPL_H\n",
        '#include <mpi.h>\n\n#include "base/ivec.h"\n',
        structs + "\n",
    ]
    chapter = None
    for f in sorted(owners(api), key=lambda f: f.chapter):
        if f.chapter != chapter:
            chapter = f.chapter
            parts.append(f"\n/* {chapter} */")
        parts.append(wrap_prototype(prototype(f)) + ";")
    parts.append("\n#endif")
    return "\n".join(parts) + "\n"
