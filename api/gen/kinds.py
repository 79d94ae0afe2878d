# Determines the kind of each parameter, which selects its check in the wrapper. The kind is inferred from type, name and chapter; the params
# column of functions.tsv overrides it (`name:kind@where`; kind or where may be missing).
#
# SPDX-License-Identifier: Apache-2.0

import re

from .model import TableError

# Kind of a parameter: condition that the wrapper checks.
KINDS = {
    "handle": "a handle that must be valid",
    "null": "a handle that must be valid or the null handle, which arrives as NULL",
    "raw": "a handle the implementation resolves itself",
    "committed": "a valid datatype that is committed",
    "count": "not negative (MPI_ERR_COUNT)",
    "nonneg": "not negative (MPI_ERR_ARG)",
    "counts": "an array of counts, one a peer, none negative (MPI_ERR_COUNT)",
    "mycounts": "the same, one a member of the own group",
    "types": "an array of datatypes, one a peer, all valid and committed",
    "buf": "not NULL when there is something of a predefined type to move (MPI_ERR_BUFFER)",
    "dest": "a rank or MPI_PROC_NULL",
    "source": "a rank, MPI_ANY_SOURCE or MPI_PROC_NULL",
    "root": "a root as the communicator's kind wants it",
    "sendtag": "0..MPI_TAG_UB",
    "recvtag": "0..MPI_TAG_UB or MPI_ANY_TAG",
    "ptr": "not NULL (MPI_ERR_ARG)",
    "key": "not NULL (MPI_ERR_INFO_KEY)",
    "value": "not NULL (MPI_ERR_INFO_VALUE)",
    "array": "not NULL when its length is not 0 (MPI_ERR_ARG)",
    "inout": "not NULL (MPI_ERR_ARG), and read before it is written",
    "plain": "nothing",
}

# Value of `where`: C condition under which the argument is significant at the caller ({buf}: the buffer of the argument).
WHERE = {
    "root": "api_is_root(comm_, root)",
    "leaf": "api_is_leaf(comm_, root, {buf})",
    "given": "{buf} != MPI_IN_PLACE",
    "member": "root != MPI_PROC_NULL",
    "operand": "op != MPI_NO_OP",
}

COUNTS = {"count", "incount", "outcount", "sendcount", "recvcount", "origin_count", "result_count", "target_count"}
NONNEG = {"n", "length", "size", "blocklength", "outsize", "insize", "max_integers", "max_addresses",
          "max_large_counts", "max_datatypes", "valuelen"}
LENGTHS = ("count", "incount", "n", "length")
BUFFERS = {"buf", "sendbuf", "recvbuf", "buffer", "inbuf", "outbuf", "inoutbuf", "origin_addr", "result_addr"}
COMMUNICATION = {"p2p", "coll", "persistent-coll", "partitioned", "rma", "io"}


def classify_parameters(api):
    """Sets kind and significance (`when`) of every parameter of every function."""
    for f in api.functions:
        for p in f.params:
            p.kind = _infer_kind(f, p)
    for f in api.functions:
        _apply_params_column(f, f.base if f.base and f.base.wide is f else f)


def _apply_params_column(f, described):
    """Applies the params column; an `_c` function is described by the row of its small form."""
    if described.params_cell == "-":
        return
    for item in described.params_cell.split(" "):
        match = re.fullmatch(r"(\w+)(?::(\w+))?(?:@(\w+))?", item)
        if not match or (match[2] and match[2] not in KINDS) or (match[3] and match[3] not in WHERE):
            raise TableError(f"{described.name}: cannot parse '{item}' in the params column")
        param = f.param(match[1])
        param.kind = match[2] or param.kind
        param.when = match[3]


def _infer_kind(f, p):
    if f.is_tool:
        return "null" if p.handle == "info" else "plain"
    if p.handle:
        return _infer_handle_kind(f, p)
    if p.is_value:
        return _infer_value_kind(f, p)
    if p.base == "MPI_Status":
        return "ptr" if f.short.startswith(("Status_", "Get_", "Test_cancelled")) else "plain"
    if p.is_array:
        has_length = any(q.name in LENGTHS for q in f.params)
        return "array" if has_length else "plain"
    if p.base == "void":
        # A rank without neighbours needs no buffer, so buffers of neighbourhood collectives are not checked.
        moves = p.name in BUFFERS and "neighborhood" not in f.marks and find_count_and_type(f, p)
        return "buf" if moves else "plain"
    return _infer_pointer_kind(f, p)


def _infer_handle_kind(f, p):
    if f.chapter in ("abi", "lang-interop"):
        return "raw"
    if p.handle == "info" and f.chapter != "info":
        return "null"
    if p.handle == "dtype" and f.chapter in COMMUNICATION:
        return "committed"
    return "handle"


def _infer_value_kind(f, p):
    if p.name in COUNTS:
        return "count"
    if p.name in NONNEG:
        return "nonneg"
    if not any(q.handle == "comm" for q in f.params):
        return "plain"
    if p.name in ("dest", "source", "root"):
        return p.name
    if p.name in ("tag", "sendtag", "recvtag"):
        receives = p.name == "recvtag" or any(q.name == "source" for q in f.params)
        return "recvtag" if receives and p.name != "sendtag" else "sendtag"
    return "plain"


def _infer_pointer_kind(f, p):
    if p.stars != "*":
        return "plain"
    if p.base == "char" and p.const and f.chapter == "info":
        return "key" if p.name == "key" else "value"
    if p.base.endswith("_attr_function") or p.base in ("MPI_Copy_function", "MPI_Delete_function"):
        return "plain"  # NULL is valid: MPI_COMM_NULL_COPY_FN and similar constants are 0
    return "ptr"


def find_count_and_type(f, buffer):
    """Returns the (count, datatype) parameters that describe a buffer, or None."""
    rest = f.params[f.params.index(buffer) + 1:]
    while rest and (rest[0].base == "void" or rest[0].name == "partitions"):
        rest = rest[1:]
    if len(rest) >= 2 and rest[0].name in COUNTS and rest[0].is_value and rest[1].handle == "dtype":
        return rest[0], rest[1]
    return None


def significance_condition(f, p):
    """Returns the C condition under which an argument is significant at the caller; None if it always is."""
    if not p.when:
        return None
    side = "recv" if p.name.startswith("r") and p.name != "root" else "send"
    names = {q.name for q in f.params}
    buf = side + "buf" if side + "buf" in names else "buffer"
    if p.when == "leaf" and "sendcounts" in names or p.when == "leaf" and "catter" in f.name:
        buf = "recvbuf"
    return WHERE[p.when].format(buf=buf)
