# Writes the C text of the check of one argument: a fast comparison, and the call of a function that reports the error. A failed check sets
# rc and ends in `goto leave`, which releases the lock before the error handler runs.
#
# SPDX-License-Identifier: Apache-2.0

from .kinds import LENGTHS, find_count_and_type

# Kind of handle: (function that returns the object, whether the function needs the process, null handle).
RESOLVE = {
    "comm": ("comm_from", True, "MPI_COMM_NULL"),
    "group": ("group_from", True, "MPI_GROUP_NULL"),
    "dtype": ("dtype_from_handle", False, "MPI_DATATYPE_NULL"),
    "op": ("op_from_handle", False, "MPI_OP_NULL"),
    "info": ("info_from", True, "MPI_INFO_NULL"),
    "errhandler": ("errhandler_from", False, "MPI_ERRHANDLER_NULL"),
    "session": ("session_from", False, "MPI_SESSION_NULL"),
    "request": ("request_from_handle", False, "MPI_REQUEST_NULL"),
    "win": ("win_from", False, "MPI_WIN_NULL"),
    "file": ("file_from", False, "MPI_FILE_NULL"),
}


def make_handle_lookup(f, p):
    """Returns the lines that convert a handle to a pointer to the object, or fail."""
    function, needs_proc, null = RESOLVE[p.handle]
    resolved = f"{p.name}_ = {function}({'proc, ' if needs_proc else ''}{p.name});"
    bad = f"!{p.name}_"
    count = _find_count(f, p)
    if p.kind == "committed" and count:
        # A separate variable: the address of `nothing` is passed, so the compiler would keep it in memory instead of a register.
        return [resolved, f"if (unlikely(!{p.name}_)) {{", "    struct dtype *nothing = NULL;",
                f'    rc = api_check_null_type("{p.name}", {p.name}, {count}, &nothing);', "    if (rc)", "        goto leave;",
                f"    {p.name}_ = nothing;", "}"]
    if p.kind == "null":
        bad += f" && {p.name} != {null}"
    return [resolved] + _make_failure(bad, f'bad_handle(HANDLE_{p.handle.upper()}, "{p.name}", {p.name})')


def _find_count(f, p):
    """Returns the name of the count that precedes a datatype, or None."""
    before = f.params[f.params.index(p) - 1] if f.params.index(p) > 0 else None
    return before.name if before and before.kind == "count" else None


def make_check(f, p):
    """Returns the lines that check one argument; none if its kind needs no check."""
    return CHECKS.get(p.kind, _check_nothing)(f, p)


def _make_failure(condition, cause):
    return [f"if (unlikely({condition})) {{", f"    rc = {cause};", "    goto leave;", "}"]


def _check_nothing(f, p):
    return []


def _check_committed(f, p):
    return _make_failure(f"!{p.name}_->committed", f'bad_uncommitted("{p.name}", {p.name}_)')


def _check_count(f, p):
    return _make_failure(f"{p.name} < 0", f'bad_count("{p.name}", {p.name})')


def _check_nonneg(f, p):
    return _make_failure(f"{p.name} < 0", f'bad_negative("{p.name}", {p.name})')


def _check_counts(f, p):
    vector = f"ivec_from_int({p.name})" if p.base == "int" else f"ivec_from_int64({p.name})"
    return [f'rc = api_check_counts("{p.name}", {vector}, {_number_of_peers(p)});', *_return_error()]


def _check_types(f, p):
    return [f'rc = api_check_types("{p.name}", {p.name}, {_number_of_peers(p)});', *_return_error()]


def _number_of_peers(p):
    return "comm_->size" if p.kind == "mycounts" else "comm_peers(comm_)"


def _return_error():
    return ["if (unlikely(rc))", "    goto leave;"]


def _check_buf(f, p):
    count, dtype = find_count_and_type(f, p)
    return _make_failure(f"!{p.name} && {count.name} > 0 && api_needs_buffer({dtype.name}_)", f'bad_buffer("{p.name}")')


def _check_dest(f, p):
    return _make_failure(f"!api_is_valid_dest(comm_, {p.name})", f'bad_rank("{p.name}", {p.name}, comm_)')


def _check_source(f, p):
    return _make_failure(f"!api_is_valid_source(comm_, {p.name})", f'bad_rank("{p.name}", {p.name}, comm_)')


def _check_root(f, p):
    return _make_failure(f"!api_is_valid_root(comm_, {p.name})", f'bad_root("{p.name}", {p.name}, comm_)')


def _check_sendtag(f, p):
    return _make_failure(f"{p.name} < 0", f'bad_tag("{p.name}", {p.name})')


def _check_recvtag(f, p):
    return _make_failure(f"{p.name} < 0 && {p.name} != MPI_ANY_TAG", f'bad_tag("{p.name}", {p.name})')


def _check_ptr(f, p):
    return _make_failure(f"!{p.name}", "MPI_T_ERR_INVALID" if f.is_tool else f'bad_null("{p.name}", MPI_ERR_ARG)')


def _check_key(f, p):
    return _make_failure(f"!{p.name}", f'bad_null("{p.name}", MPI_ERR_INFO_KEY)')


def _check_value(f, p):
    return _make_failure(f"!{p.name}", f'bad_null("{p.name}", MPI_ERR_INFO_VALUE)')


def _check_array(f, p):
    length = next(q.name for q in f.params if q.name in LENGTHS)
    return _make_failure(f"!{p.name} && {length} > 0", f'bad_null("{p.name}", MPI_ERR_ARG)')


CHECKS = {
    "committed": _check_committed,
    "count": _check_count,
    "nonneg": _check_nonneg,
    "counts": _check_counts,
    "mycounts": _check_counts,
    "types": _check_types,
    "buf": _check_buf,
    "dest": _check_dest,
    "source": _check_source,
    "root": _check_root,
    "sendtag": _check_sendtag,
    "recvtag": _check_recvtag,
    "ptr": _check_ptr,
    "inout": _check_ptr,
    "key": _check_key,
    "value": _check_value,
    "array": _check_array,
}
