# The C text of one argument's check: a test that costs a compare or two, and a cold function that reports what is wrong.
# Every check ends in `goto leave` with rc set, so that the lock is dropped before the error handler runs.
#
# SPDX-License-Identifier: Apache-2.0

from .kinds import LENGTHS, measure

# handle -> (function that resolves it, needs the process, null handle, name in enum api_handle)
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


def resolve_handle(f, p):
    """Lines that turn a handle into the internal pointer, or fail."""
    function, needs_proc, null = RESOLVE[p.handle]
    resolved = f"{p.name}_ = {function}({'proc, ' if needs_proc else ''}{p.name});"
    bad = f"!{p.name}_"
    count = _count_of(f, p)
    if p.kind == "committed" and count:
        # Through a variable of its own: one whose address is known elsewhere would live in memory on the fast path too.
        return [resolved, f"if (unlikely(!{p.name}_)) {{", "    struct dtype *nothing = NULL;",
                f'    rc = api_check_null_type("{p.name}", {p.name}, {count}, &nothing);', "    if (rc)", "        goto leave;",
                f"    {p.name}_ = nothing;", "}"]
    if p.kind == "null":
        bad += f" && {p.name} != {null}"
    return [resolved] + _fail(bad, f'bad_handle(HANDLE_{p.handle.upper()}, "{p.name}", {p.name})')


def _count_of(f, p):
    """The name of the count that goes with a datatype, or None."""
    before = f.params[f.params.index(p) - 1] if f.params.index(p) > 0 else None
    return before.name if before and before.kind == "count" else None


def check_param(f, p):
    """Lines that check one argument; none when its kind needs no check."""
    return CHECKS.get(p.kind, _nothing)(f, p)


def _fail(condition, cause):
    return [f"if (unlikely({condition})) {{", f"    rc = {cause};", "    goto leave;", "}"]


def _nothing(f, p):
    return []


def _committed(f, p):
    return _fail(f"!{p.name}_->committed", f'bad_uncommitted("{p.name}", {p.name}_)')


def _count(f, p):
    return _fail(f"{p.name} < 0", f'bad_count("{p.name}", {p.name})')


def _nonneg(f, p):
    return _fail(f"{p.name} < 0", f'bad_negative("{p.name}", {p.name})')


def _counts(f, p):
    vector = f"ivec_from_int({p.name})" if p.base == "int" else f"ivec_from_int64({p.name})"
    return [f'rc = api_check_counts("{p.name}", {vector}, {_peers(p)});', *_stop_if_rc()]


def _types(f, p):
    return [f'rc = api_check_types("{p.name}", {p.name}, {_peers(p)});', *_stop_if_rc()]


def _peers(p):
    return "comm_->size" if p.kind == "mycounts" else "comm_peers(comm_)"


def _stop_if_rc():
    return ["if (unlikely(rc))", "    goto leave;"]


def _buf(f, p):
    count, dtype = measure(f, p)
    return _fail(f"!{p.name} && {count.name} > 0 && api_needs_buffer({dtype.name}_)", f'bad_buffer("{p.name}")')


def _dest(f, p):
    return _fail(f"!api_is_valid_dest(comm_, {p.name})", f'bad_rank("{p.name}", {p.name}, comm_)')


def _source(f, p):
    return _fail(f"!api_is_valid_source(comm_, {p.name})", f'bad_rank("{p.name}", {p.name}, comm_)')


def _root(f, p):
    return _fail(f"!api_is_valid_root(comm_, {p.name})", f'bad_root("{p.name}", {p.name}, comm_)')


def _sendtag(f, p):
    return _fail(f"{p.name} < 0", f'bad_tag("{p.name}", {p.name})')


def _recvtag(f, p):
    return _fail(f"{p.name} < 0 && {p.name} != MPI_ANY_TAG", f'bad_tag("{p.name}", {p.name})')


def _ptr(f, p):
    return _fail(f"!{p.name}", "MPI_T_ERR_INVALID" if f.is_tool else f'bad_null("{p.name}", MPI_ERR_ARG)')


def _key(f, p):
    return _fail(f"!{p.name}", f'bad_null("{p.name}", MPI_ERR_INFO_KEY)')


def _value(f, p):
    return _fail(f"!{p.name}", f'bad_null("{p.name}", MPI_ERR_INFO_VALUE)')


def _array(f, p):
    length = next(q.name for q in f.params if q.name in LENGTHS)
    return _fail(f"!{p.name} && {length} > 0", f'bad_null("{p.name}", MPI_ERR_ARG)')


CHECKS = {
    "committed": _committed,
    "count": _count,
    "nonneg": _nonneg,
    "counts": _counts,
    "mycounts": _counts,
    "types": _types,
    "buf": _buf,
    "dest": _dest,
    "source": _source,
    "root": _root,
    "sendtag": _sendtag,
    "recvtag": _recvtag,
    "ptr": _ptr,
    "inout": _ptr,
    "key": _key,
    "value": _value,
    "array": _array,
}
