# Writes wrappers_*.c: for every function the strong PMPI_X, which checks its arguments, resolves its handles and
# calls impl_X, and the weak MPI_X. The order inside is fixed: running?, lock, handles and checks, call, unlock,
# error handler.
#
# SPDX-License-Identifier: Apache-2.0

import re

from . import impl
from .checks import RESOLVE, check_param, resolve_handle
from .kinds import significance
from .model import HANDLES
from .text import banner, wrap_call, wrap_prototype

# `when` column: (must MPI be running?, does the call take the process's lock?)
WHEN = {
    "-": (True, True),
    "any": (False, True),
    "tool": (False, True),
    "free": (False, False),
    "bare": (True, False),
}

# Which object's error handler hears of an error, best first.
OBJECTS = ("comm", "win", "file", "session")
POINTERS = {"MPI_Comm": "comm", "MPI_Win": "win", "MPI_File": "file", "MPI_Session": "session"}
ENDINGS = ("_free", "_disconnect", "_close", "_finalize")


def file_name(chapter):
    return "wrappers_" + chapter.replace("/", "_").replace("-", "_") + ".c"


def write_wrappers(api, chapter):
    """The text of one chapter's wrappers."""
    parts = [
        banner(f"The wrappers of the chapter '{chapter}': PMPI_X checks and calls impl_X; MPI_X is its weak alias."),
        '#include "api/wrapper.h"\n',
    ]
    for f in api.functions:
        if f.chapter == chapter:
            parts.append(_function(f))
    return "\n".join(parts)


def _function(f):
    lines = [wrap_prototype(f.prototype("P")), "{", *(_indent(line) for line in _body(f)), "}"]
    alias = wrap_prototype(f.prototype()) + f'\n    __attribute__((weak, alias("P{f.name}")));'
    return "\n".join(lines) + "\n" + alias + "\n"


def _indent(line):
    return line if not line or line.endswith(":") else "    " + line


def _returns_code(f):
    """Does the function return an error code, rather than the requested value?"""
    return f.errors != "none"


def _raises(f):
    """MPI_T functions return codes and never call an error handler."""
    return not f.is_tool


def _error_object(f):
    """(kind, C expression) of the object whose error handler is called."""
    if f.errors == "file":
        return "ERROR_ON_FILE", "NULL"
    for kind in OBJECTS:
        for p in f.params:
            if p.handle == kind and p.kind in ("handle", "null"):
                return f"ERROR_ON_{kind.upper()}", p.name + "_"
    if f.name.endswith(ENDINGS):
        for p in f.params:
            if p.is_pointer and p.base in POINTERS:
                kind = POINTERS[p.base]
                return f"ERROR_ON_{kind.upper()}", f"api_{kind}_at({p.name})"
    return "ERROR_ON_NOTHING", "NULL"


def _body(f):
    if not _returns_code(f):
        return [f"return {_call(f)};"]
    must_run, locks = WHEN[f.when]
    owner = f.base or f
    handles = [p for p in f.params if impl.mode(owner, _owner_param(f, owner, p)) == impl.HANDLE]
    outputs = [p for p in f.params if _is_narrow_output(f, owner, p)]
    head = [f"struct {p.handle} *{p.name}_ = NULL;" for p in handles]
    head += [f"{_owner_wide(f, owner, p).base} {p.name}_ = 0;" for p in outputs]
    head += ["int rc;", ""]
    lines = []
    head = _record(f) + head
    if must_run:
        lines += ["if (unlikely(!proc))", f'    return api_error_outside_mpi("{f.name}");']
    if locks:
        lines.append("api_enter(proc);" if must_run else "api_enter_any(proc);")
    if f.when == "tool":
        lines += ["rc = api_enter_tool();", "if (unlikely(rc))", "    goto outside;"]
    steps = _checks(f, handles)
    lines += steps
    lines += [f"{p.name}_ = *{p.name};" for p in outputs if p.kind == "inout"]
    lines.append(wrap_call(f"rc = {_call(f)};"))
    for p in outputs:
        narrow = "api_count_to_int" if p.base == "int" else "(MPI_Aint)"
        lines += ["if (likely(!rc))", f"    *{p.name} = {narrow}({p.name}_);"]
    if any("goto leave" in line for line in steps):
        lines.append("leave:")
    if f.when == "tool":
        lines += ["api_leave_tool();", "outside:"]
    if locks:
        lines.append("api_leave(proc);" if must_run else "api_leave_any(proc);")
    lines += _ending(f)
    if any(re.search(r"\bproc\b", line) for line in lines):
        head.insert(0, "struct proc *const proc = the_proc;")
    return head + lines


def _record(f):
    """The arguments, kept on the stack for a crash note (src/api/crash.h), in functions that touch the program's data."""
    if not any(p.kind == "buf" or p.kind == "counts" for p in f.params):
        return []
    kinds = "".join(_letter(p) for p in f.params)
    names = "".join(p.name + " " for p in f.params)
    fields = [f"    API_KEPT({p.name});" for p in f.params]
    values = ", ".join(p.name for p in f.params)
    return [f'API_SIGNATURE = {{"{f.name}", "{kinds}",', f'    "{names}"}};',
            "const struct {", "    const void *signature;", *fields, wrap_call(f"}} record = {{&signature, {values}}};"),
            "API_RECORD(record);"]


def _letter(p):
    """How a crash note shows an argument."""
    if p.handle in ("comm", "dtype", "op"):
        return p.handle[0] if p.handle != "dtype" else "t"
    if not p.is_value or p.handle:
        return "p"
    return "i" if p.base == "int" else "l"


def _ending(f):
    if not _raises(f):
        return ["return rc;"]
    kind, expression = _error_object(f)
    report = f'api_error({kind}, {expression}, rc, "{f.name}")'
    if f.errors == "errhandler":
        report = f'api_error_to_handler(errhandler_, rc, "{f.name}")'
    return ["if (unlikely(rc))", f"    return {report};", "return MPI_SUCCESS;"]


def _checks(f, handles):
    """Handles first, the communicator before the rest, then every other argument unless FISHPLATE_CHECK=0."""
    by_object = sorted(handles, key=lambda p: OBJECTS.index(p.handle) if p.handle in OBJECTS else len(OBJECTS))
    lines = _guarded((significance(f, p), resolve_handle(f, p)) for p in by_object)
    root_first = sorted(f.params, key=lambda p: p.kind != "root")
    others = _guarded((significance(f, p), check_param(f, p)) for p in root_first)
    if others:
        condition = "proc->check_args" if WHEN[f.when][0] else "api_checks(proc)"
        lines += [f"if (likely({condition})) {{", *("    " + line for line in others), "}"]
    return lines


def _guarded(steps):
    """Joins (condition, lines) pairs; neighbours under the same condition share one `if`."""
    joined = []
    for condition, lines in steps:
        if not lines:
            continue
        if joined and joined[-1][0] == condition:
            joined[-1][1].extend(lines)
        else:
            joined.append((condition, list(lines)))
    result = []
    for condition, lines in joined:
        if condition:
            lines = [f"if ({condition}) {{", *("    " + line for line in lines), "}"]
        result += lines
    return result


def _owner_param(f, owner, p):
    return owner.params[f.params.index(p)]


def _owner_wide(f, owner, p):
    return impl.wide_param(owner, _owner_param(f, owner, p))


def _is_narrow_output(f, owner, p):
    """An output that the implementation writes wide and this binding hands out narrow."""
    mode = impl.mode(owner, _owner_param(f, owner, p))
    return mode == impl.OUTPUT and _owner_wide(f, owner, p).base != p.base


def _call(f):
    if f.is_conversion:
        return _conversion(f)
    owner = f.base or f
    return f"impl_{owner.short}({', '.join(_argument(f, owner, p) for p in f.params)})"


def _conversion(f):
    argument = f.params[0].name
    if f.name.endswith(("_toint", "_c2f")):
        return f"api_handle_to_int({argument})"
    null = RESOLVE[HANDLES[f.returns]][2] if f.returns in HANDLES else "MPI_MESSAGE_NULL"
    return f"api_handle_from_int({argument}, {null})"


def _argument(f, owner, p):
    mode = impl.mode(owner, _owner_param(f, owner, p))
    if mode == impl.HANDLE:
        return p.name + "_"
    if mode == impl.VECTOR:
        return f"ivec_from_int({p.name})" if p.base == "int" else f"ivec_from_int64({p.name})"
    if _is_narrow_output(f, owner, p):
        return f"&{p.name}_"
    return p.name
