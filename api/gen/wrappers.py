# Writes wrappers_*.c: for every function the strong PMPI_X, which checks its arguments, resolves its handles and calls impl_X, and the weak
# MPI_X. The steps are: check that MPI is initialised, lock, handles and argument checks, call, unlock, error handler.
#
# SPDX-License-Identifier: Apache-2.0

import re

from . import impl
from .checks import RESOLVE, make_check, make_handle_lookup
from .kinds import significance_condition
from .model import HANDLES
from .text import make_banner, wrap_call, wrap_prototype

# Value of the `when` column: (whether MPI must be initialised, whether the call takes the lock of the process).
WHEN = {
    "-": (True, True),
    "any": (False, True),
    "tool": (False, True),
    "free": (False, False),
    "bare": (True, False),
}

# Kinds of objects whose error handler is called; the first kind among the parameters is used.
OBJECTS = ("comm", "win", "file", "session")
POINTERS = {"MPI_Comm": "comm", "MPI_Win": "win", "MPI_File": "file", "MPI_Session": "session"}
ENDINGS = ("_free", "_disconnect", "_close", "_finalize")


def wrapper_file_name(chapter):
    return "wrappers_" + chapter.replace("/", "_").replace("-", "_") + ".c"


def write_wrappers(api, chapter):
    """Returns the text of the wrappers of a chapter."""
    parts = [
        make_banner(f"The wrappers of the chapter '{chapter}': PMPI_X checks and calls impl_X; MPI_X is its weak alias."),
        '#include "api/wrapper.h"\n',
    ]
    for f in api.functions:
        if f.chapter == chapter:
            parts.append(_make_wrapper(f))
    return "\n".join(parts)


def _make_wrapper(f):
    lines = [wrap_prototype(f.prototype("P")), "{", *(_indent_line(line) for line in _make_body(f)), "}"]
    alias = wrap_prototype(f.prototype()) + f'\n    __attribute__((weak, alias("P{f.name}")));'
    return "\n".join(lines) + "\n" + alias + "\n"


def _indent_line(line):
    return line if not line or line.endswith(":") else "    " + line


def _returns_code(f):
    """Returns True if the function returns an error code, False if it returns a value."""
    return f.errors != "none"


def _calls_error_handler(f):
    """Returns False for MPI_T functions, which return error codes and never call an error handler."""
    return not f.is_tool


def _find_error_object(f):
    """Returns (kind, C expression) of the object whose error handler is called."""
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


def _make_body(f):
    if not _returns_code(f):
        return [f"return {_make_call(f)};"]
    must_run, locks = WHEN[f.when]
    owner = f.base or f
    handles = [p for p in f.params if impl.parameter_mode(owner, _find_owner_param(f, owner, p)) == impl.HANDLE]
    outputs = [p for p in f.params if _is_narrow_output(f, owner, p)]
    head = [f"struct {p.handle} *{p.name}_ = NULL;" for p in handles]
    head += [f"{_find_owner_wide_param(f, owner, p).base} {p.name}_ = 0;" for p in outputs]
    head += ["int rc;", ""]
    lines = []
    head = _make_record(f) + head
    if must_run:
        lines += ["if (unlikely(!proc))", f'    return api_error_outside_mpi("{f.name}");']
    if locks:
        lines.append("api_enter(proc);" if must_run else "api_enter_any(proc);")
    if f.when == "tool":
        lines += ["rc = api_enter_tool();", "if (unlikely(rc))", "    goto outside;"]
    steps = _make_checks(f, handles)
    lines += steps
    lines += [f"{p.name}_ = *{p.name};" for p in outputs if p.kind == "inout"]
    lines.append(wrap_call(f"rc = {_make_call(f)};"))
    for p in outputs:
        narrow = "api_count_to_int" if p.base == "int" else "(MPI_Aint)"
        lines += ["if (likely(!rc))", f"    *{p.name} = {narrow}({p.name}_);"]
    if any("goto leave" in line for line in steps):
        lines.append("leave:")
    if f.when == "tool":
        lines += ["api_leave_tool();", "outside:"]
    if locks:
        lines.append("api_leave(proc);" if must_run else "api_leave_any(proc);")
    lines += _make_ending(f)
    if any(re.search(r"\bproc\b", line) for line in lines):
        head.insert(0, "struct proc *const proc = the_proc;")
    return head + lines


def _make_record(f):
    """Returns the lines that store the arguments on the stack for the crash report (src/api/crash.h), in functions with data buffers."""
    if not any(p.kind == "buf" or p.kind == "counts" for p in f.params):
        return []
    kinds = "".join(_argument_letter(p) for p in f.params)
    names = "".join(p.name + " " for p in f.params)
    fields = [f"    API_KEPT({p.name});" for p in f.params]
    values = ", ".join(p.name for p in f.params)
    return [f'API_SIGNATURE = {{"{f.name}", "{kinds}",', f'    "{names}"}};',
            "const struct {", "    const void *signature;", *fields, wrap_call(f"}} record = {{&signature, {values}}};"),
            "API_RECORD(record);"]


def _argument_letter(p):
    """Returns the letter that selects how a crash report prints an argument."""
    if p.handle in ("comm", "dtype", "op"):
        return p.handle[0] if p.handle != "dtype" else "t"
    if not p.is_value or p.handle:
        return "p"
    return "i" if p.base == "int" else "l"


def _make_ending(f):
    if not _calls_error_handler(f):
        return ["return rc;"]
    kind, expression = _find_error_object(f)
    report = f'api_error({kind}, {expression}, rc, "{f.name}")'
    if f.errors == "errhandler":
        report = f'api_error_to_handler(errhandler_, rc, "{f.name}")'
    return ["if (unlikely(rc))", f"    return {report};", "return MPI_SUCCESS;"]


def _make_checks(f, handles):
    """Returns the checks: first of handles, with the communicator first, then of other arguments unless FISHPLATE_CHECK=0."""
    by_object = sorted(handles, key=lambda p: OBJECTS.index(p.handle) if p.handle in OBJECTS else len(OBJECTS))
    lines = _join_conditions((significance_condition(f, p), make_handle_lookup(f, p)) for p in by_object)
    root_first = sorted(f.params, key=lambda p: p.kind != "root")
    others = _join_conditions((significance_condition(f, p), make_check(f, p)) for p in root_first)
    if others:
        condition = "proc->check_args" if WHEN[f.when][0] else "api_checks(proc)"
        lines += [f"if (likely({condition})) {{", *("    " + line for line in others), "}"]
    return lines


def _join_conditions(steps):
    """Joins (condition, lines) pairs; successive pairs with the same condition get one `if`."""
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


def _find_owner_param(f, owner, p):
    return owner.params[f.params.index(p)]


def _find_owner_wide_param(f, owner, p):
    return impl.find_wide_param(owner, _find_owner_param(f, owner, p))


def _is_narrow_output(f, owner, p):
    """Returns True if the implementation writes a wider type than this function returns."""
    mode = impl.parameter_mode(owner, _find_owner_param(f, owner, p))
    return mode == impl.OUTPUT and _find_owner_wide_param(f, owner, p).base != p.base


def _make_call(f):
    if f.is_conversion:
        return _make_conversion(f)
    owner = f.base or f
    return f"impl_{owner.short}({', '.join(_argument_text(f, owner, p) for p in f.params)})"


def _make_conversion(f):
    argument = f.params[0].name
    if f.name.endswith(("_toint", "_c2f")):
        return f"api_handle_to_int({argument})"
    null = RESOLVE[HANDLES[f.returns]][2] if f.returns in HANDLES else "MPI_MESSAGE_NULL"
    return f"api_handle_from_int({argument}, {null})"


def _argument_text(f, owner, p):
    mode = impl.parameter_mode(owner, _find_owner_param(f, owner, p))
    if mode == impl.HANDLE:
        return p.name + "_"
    if mode == impl.VECTOR:
        return f"ivec_from_int({p.name})" if p.base == "int" else f"ivec_from_int64({p.name})"
    if _is_narrow_output(f, owner, p):
        return f"&{p.name}_"
    return p.name
