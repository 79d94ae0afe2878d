# Writes impl.h: the implementation functions behind the API, one for each pair MPI_X, MPI_X_c. This file has the rules that convert a
# prototype to the signature of the implementation (README.md describes them).
#
# SPDX-License-Identifier: Apache-2.0

from .model import HANDLES
from .text import make_banner, wrap_prototype

PLAIN, HANDLE, SCALAR, VECTOR, OUTPUT = "plain", "handle", "scalar", "vector", "output"


def parameter_mode(f, p):
    """Returns the form in which a parameter of MPI_X is passed to impl_X; f is the function with int counts."""
    if p.handle and p.kind != "raw":
        return HANDLE
    twin = find_wide_param(f, p)
    if twin is None or twin.base == p.base:
        return PLAIN
    if p.is_value:
        return SCALAR
    return VECTOR if p.is_array else OUTPUT


def find_wide_param(f, p):
    """Returns the corresponding parameter of the large-count function, or None."""
    return f.wide.params[f.params.index(p)] if f.wide else None


def declare_parameter(f, p):
    """Returns the declaration of a parameter of the implementation function."""
    how = parameter_mode(f, p)
    if how == HANDLE:
        return f"struct {p.handle} *{p.name}"
    if how == VECTOR:
        return f"struct ivec {p.name}"
    if how in (SCALAR, OUTPUT):
        return find_wide_param(f, p).declare()
    return p.text.removeprefix("const ") if p.is_value else p.text


def make_prototype(f):
    params = ", ".join(declare_parameter(f, p) for p in f.params) or "void"
    return f"{f.returns} impl_{f.short}({params})"


def list_implemented(api):
    """Returns the functions that have an implementation; other functions share one."""
    return [f for f in api.functions if f.base is None and not f.is_conversion]


def write_impl(api):
    structs = "\n".join(f"struct {name};" for name in sorted(HANDLES.values()))
    parts = [
        make_banner("The implementation functions that the API's wrappers call with checked arguments."),
        "#ifndef FISHPLATE_IMPL_H\n#define FISHPLATE_IMPL_H\n",
        '#include <mpi.h>\n\n#include "base/ivec.h"\n',
        structs + "\n",
    ]
    chapter = None
    for f in sorted(list_implemented(api), key=lambda f: f.chapter):
        if f.chapter != chapter:
            chapter = f.chapter
            parts.append(f"\n/* {chapter} */")
        parts.append(wrap_prototype(make_prototype(f)) + ";")
    parts.append("\n#endif")
    return "\n".join(parts) + "\n"
