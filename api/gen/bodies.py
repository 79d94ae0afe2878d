# Writes bodies.c: the implementations that differ only in the form of the call, and those that only forward their
# arguments (FORWARDS). A collective operation is described by one
# function (src/api/coll.h: args_*) and has a blocking, a nonblocking and a persistent form, each of them also for
# neighbours. A read or write of a file (src/api/file.h: file_read_call, file_write_call) is individual or collective, blocking or
# nonblocking, at an explicit offset, at the individual or at the shared file pointer; a collective one can also be split into a begin and
# an end.
#
# SPDX-License-Identifier: Apache-2.0

import re

from .impl import declare, owners, prototype
from .model import HANDLES
from .text import banner, wrap_call, wrap_prototype

REDUCTIONS = ("reduce", "allreduce", "scan", "exscan")
MOVES = ("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
         "alltoallw", "reduce_scatter", "reduce_scatter_block")
PLACES = {"": "AT_POINTER", "at": "AT_OFFSET", "shared": "AT_SHARED", "ordered": "AT_ORDERED"}

# (pattern of the function's name, call): the function returns the result of the call. (pattern, struct, call, result):
# the call makes an object in `made`, and the function returns the result. {1} is the first group of the pattern, {1u} in
# capitals, {0} the name; {handle} the function that gives the handle of the first parameter. $name is a parameter, $0 the
# first one, $* all that the call does not name; the last one of a function that makes an object is its output.
FORWARDS = [(re.compile(row[0]), *row[1:]) for row in (
    ("(Comm|Type|Win)_create_keyval",
     "attr_keyval_create(the_proc, ATTR_{1u}, (void (*)(void))$0, (void (*)(void))$1, $extra_state, $2)"),
    ("(Comm|Type|Win)_free_keyval", "attr_keyval_free(the_proc, ATTR_{1u}, $*)"),
    ("(Comm|Type|Win)_(set|delete)_attr", "attr_{2}(the_proc, ATTR_{1u}, {handle}($0), &$0->attrs, $*)"),
    ("(Comm|Win|File|Session)_create_errhandler", "errhandler_return_new(ERROR_ON_{1u}, (void (*)(void))$0, $*)"),
    ("(Comm|Win|File|Session)_set_errhandler", "errhandler_attach(ERROR_ON_{1u}, $*)"),
    ("(Comm|Win|File|Session)_get_errhandler", "errhandler_return_attached(ERROR_ON_{1u}, $*)"),
    ("(Comm|Win|File|Session)_call_errhandler", 'errhandler_call_user(ERROR_ON_{1u}, $*, "MPI_{0}")'),
    ("(Add|Remove)_error_(class|code|string)", "error_{1l}_{2}($*)"),
    ("Buffer_(attach|detach|flush|iflush)", "buffer_{1}(&the_proc->bsend, $*)"),
    ("(Comm|Session)_(attach|detach|flush|iflush)_buffer", "buffer_{2}(&$0->bsend, $*)"),
    ("(Send|Ssend|Rsend|Bsend|Recv)_init", "persistent_new(P2P_{1u}, $*)"),
    ("Win_(fence|post|start|complete|wait|lock|unlock|lock_all|unlock_all)", "win_{1}($win, $*)"),
    ("File_(set_size|preallocate|sync|set_info|set_view)", "file_{1}($*)"),
    ("Group_(union|intersection|difference|incl|excl|range_incl|range_excl)", "group", "group_{1}(the_proc->rank, $*, &made)",
     "group_return_handle(rc, made, $0, $*)"),
    ("Type_(?:create_)?(contiguous|vector|hvector|hindexed_block|resized)", "dtype", "dtype_{1}($*, false, &made)",
     "type_return_handle(rc, made, $*)"),
    ("Type_(?:create_)?(contiguous|vector|hvector|hindexed_block|resized)_c", "dtype", "dtype_{1}($*, true, &made)",
     "type_return_handle(rc, made, $*)"),
    ("Type_(?:create_)?(indexed|hindexed|indexed_block|struct|subarray|f90_real|f90_complex|f90_integer)", "dtype",
     "dtype_{1}($*, &made)", "type_return_handle(rc, made, $*)"),
    ("Comm_(create|create_group|split|split_type)", "comm", "comm_{1}($*, &made)", "comm_return_handle(rc, made, $*)"),
    ("Comm_(dup)_with_info", "comm", "comm_{1}($*, &made)", "comm_return_handle(rc, made, $*)"),
    ("(Cart|Graph)_create", "comm", "{1l}_create($*, &made)", "comm_return_handle(rc, made, $*)"),
)]

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
    return f"ivec_from_int64({p.name})" if declare(f, p).startswith(("const MPI_Aint ", "const MPI_Count ")) else p.name


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


def forward_of(f):
    """(match, templates) of the row that describes the function, or None."""
    for pattern, *templates in FORWARDS:
        match = pattern.fullmatch(f.short)
        if match:
            return match, templates
    return None


def forward_call(f, match, template, params):
    """The C text of a template; params: what $* stands for."""
    forms = {"": str, "u": str.upper, "l": str.lower}
    text = template.replace("{handle}", f"{f.params[0].handle}_handle" if f.params else "")
    text = re.sub(r"\{(\d)([ul]?)\}", lambda m: forms[m[2]](match[int(m[1])]), text)
    named = {f.params[int(n)].name if n.isdigit() else n for n in re.findall(r"\$(\w+)", text)}
    rest = "".join(", " + argument(f, p) for p in params if p.name not in named)
    text = text.replace(", $*", rest).replace("$*", rest.removeprefix(", "))
    return re.sub(r"\$(\w+)", lambda m: f.params[int(m[1])].name if m[1].isdigit() else f.param(m[1]).name, text)


def forward_body(f, match, templates):
    if len(templates) == 1:
        return [wrap_call(f"    return {forward_call(f, match, templates[0], f.params)};")]
    struct, call, result = templates
    return [f"    struct {struct} *made = NULL;",
            wrap_call(f"    int rc = {forward_call(f, match, call, f.params[:-1])};"),
            f"    return {forward_call(f, match, result, f.params[-1:])};"]


def bodies(api):
    """(function, lines of its body)"""
    for f in owners(api):
        forward = forward_of(f)
        if forward:
            yield f, forward_body(f, *forward)
            continue
        collective, file_call = collective_of(f), FILE_CALL.fullmatch(f.short)
        if collective:
            yield f, collective_body(f, *collective)
        elif file_call:
            yield f, file_body(f, file_call)


def generated_names(api):
    return {f.short for f, _ in bodies(api)}


def write_bodies(api):
    parts = [banner("Implementations that differ only in the form of the call, or only forward their arguments."),
             '#include "api/coll.h"\n#include "api/file.h"\n#include "api/forward.h"\n#include "impl.h"\n']
    for f, lines in bodies(api):
        parts.append("\n".join([wrap_prototype(prototype(f)), "{", *lines, "}\n"]))
    return "\n".join(parts)
