# Writes bodies.c: the implementations that differ only in the form of the call. A collective operation is described by one
# function (src/api/coll.h: args_*) and has a blocking, a nonblocking and a persistent form, each of them also for
# neighbours. A read or write of a file (src/api/file.h: file_read_call, file_write_call) is individual or collective, blocking or
# nonblocking, at an explicit offset, at the individual or at the shared file pointer; a collective one can also be split into a begin and
# an end.
#
# SPDX-License-Identifier: Apache-2.0

import re

from .impl import declare, owners, prototype
from .text import banner, wrap_call, wrap_prototype

REDUCTIONS = ("reduce", "allreduce", "scan", "exscan")
MOVES = ("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
         "alltoallw", "reduce_scatter", "reduce_scatter_block")
PLACES = {"": "AT_POINTER", "at": "AT_OFFSET", "shared": "AT_SHARED", "ordered": "AT_ORDERED"}

FILE_CALL = re.compile(r"File_(i?)(read|write)(?:_(at|shared|ordered))?(_all)?(?:_(begin|end))?")


def collective_of(f):
    """(operation, form, among neighbours), or None for another function. The form is run, start or init."""
    name = f.short.lower()
    form = "run"
    if name.endswith("_init"):
        name, form = name.removesuffix("_init"), "init"
    elif name.startswith("i"):
        name, form = name[1:], "start"
    neighbour = name.startswith("neighbor_")
    name = name.removeprefix("neighbor_")
    return (name, form, neighbour) if name in REDUCTIONS + MOVES else None


def argument(f, p):
    """Displacements that are always wide travel as a vector, too."""
    return f"ivec_wide({p.name})" if declare(f, p).startswith("const MPI_Aint") else p.name


def collective_body(f, operation, form, neighbour):
    given = [argument(f, p) for p in f.params if p.name not in ("info", "request")]
    function = operation
    if operation in REDUCTIONS:
        function = "reduce"
        given.insert(0, f"COLL_{operation.upper()}")
        if operation != "reduce":
            given.insert(-1, "0")
    describe = f"args_{function}({', '.join(['&a', *given])})"
    if neighbour:
        describe = f"args_neighbor(&a, {describe})"
    request = ", request" if form != "run" else ""
    return ["    struct coll_args a;",
            wrap_call(f"    int rc = {describe};"),
            f'    return args_{form}(&a, rc, "MPI_{f.short}"{request});']


def file_body(f, match):
    nonblocking, operation, place, everyone, half = match.groups()
    split = f"SPLIT_{operation.upper()}" + (f"_{place.upper()}" if place else "")
    if half == "end":
        return ["    (void)buf; /* the buffer of the begin call is used */", f"    return file_call_end(fh, {split}, status);"]
    collective = "true" if everyone or place == "ordered" else "false"
    offset = "offset" if place == "at" else "0"
    finish = "start(&call, request)" if nonblocking else f"begin(&call, {split})" if half else "run(&call, status)"
    return [wrap_call(f"    const struct file_call call = file_{operation}_call(fh, {collective}, {PLACES[place or '']}, {offset}, buf, "
                      "count, datatype);"),
            f"    return file_call_{finish};"]


def bodies(api):
    """(function, lines of its body)"""
    for f in owners(api):
        collective, file_call = collective_of(f), FILE_CALL.fullmatch(f.short)
        if collective:
            yield f, collective_body(f, *collective)
        elif file_call:
            yield f, file_body(f, file_call)


def generated_names(api):
    return {f.short for f, _ in bodies(api)}


def write_bodies(api):
    parts = [banner("Implementations that differ only in the form of the call: collectives, reads and writes of files."),
             '#include "api/coll.h"\n#include "api/file.h"\n#include "impl.h"\n']
    for f, lines in bodies(api):
        parts.append("\n".join([wrap_prototype(prototype(f)), "{", *lines, "}\n"]))
    return "\n".join(parts)
