# Writes the wrappers of `fishplate prof` (tools/prof): for every function an MPI_X that measures the time of PMPI_X and, if the function
# transfers data, records buffers, bytes and peers. Functions with the prefix prof_ are declared in tools/prof/prof.h.
#
# SPDX-License-Identifier: Apache-2.0

from .text import make_banner, wrap_call, wrap_prototype

# Functions in which a rank waits for others, including Test and similar functions, which programs call in a loop to wait.
WAITS = ("Wait", "Test", "Probe", "Iprobe", "Mprobe", "Improbe", "Parrived", "Request_get_status")
LOCAL = ("Status_", "Test_cancelled", "Request_free", "Reduce_local", "Op_")

# Contents of the send and the receive buffer of collectives: `one` block; `each`: a block for each of the `peers`, the `members` of the own
# group, or the neighbours `in` and `out`; `sum` and `types`: blocks with separate counts, or counts and types. After @: the ranks that have
# the buffer.
COLLECTIVES = {
    "Allgather": ("one", "each peers"), "Allgatherv": ("one", "sum peers"),
    "Allreduce": ("one", "one"), "Scan": ("one", "one"), "Exscan": ("one", "one"),
    "Alltoall": ("each peers", "each peers"), "Alltoallv": ("sum peers", "sum peers"),
    "Alltoallw": ("types peers", "types peers"), "Barrier": (None, None), "Bcast": ("one@ROOT", "one@LEAF"),
    "Gather": ("one@LEAF", "each peers@ROOT"), "Gatherv": ("one@LEAF", "sum peers@ROOT"),
    "Scatter": ("each peers@ROOT", "one@LEAF"), "Scatterv": ("sum peers@ROOT", "one@LEAF"),
    "Reduce": ("one@LEAF", "one@ROOT"), "Reduce_scatter": ("sum members", "sum members"),
    "Reduce_scatter_block": ("each members", "one"),
    "Neighbor_allgather": ("one", "each in"), "Neighbor_allgatherv": ("one", "sum in"),
    "Neighbor_alltoall": ("each out", "each in"), "Neighbor_alltoallv": ("sum out", "sum in"),
    "Neighbor_alltoallw": ("types out", "types in"),
}

GROUPS = {"peers": "prof_peers", "members": "prof_comm_size", "in": "prof_in_degree", "out": "prof_out_degree"}
RULES = {"sum": "prof_sum_blocks", "types": "prof_typed_blocks"}

# Statements before the call, and statements after a successful call.
BEFORE = {
    "Finalize": "prof_world_ends();",
    "Abort": "prof_on_abort();",
    "Init_thread": "prof_threads(required);",
    "Session_init": "prof_threads(MPI_THREAD_MULTIPLE);",
    "Session_finalize": "prof_session_ends(session);",
    "T_init_thread": "prof_threads(required);",
    "Pcontrol": "prof_set_enabled(level);",
    "Comm_free": "const MPI_Comm ended = comm ? *comm : MPI_COMM_NULL;",
    "Comm_disconnect": "const MPI_Comm ended = comm ? *comm : MPI_COMM_NULL;",
    "Request_free": "prof_drop_request(request);",
}
AFTER = {
    "Init": "prof_world_begins();",
    "Init_thread": "prof_world_begins();",
    "Session_init": "prof_session_begins(*session);",
    "Comm_free": "prof_comm_freed(ended);",
    "Comm_disconnect": "prof_comm_freed(ended);",
    "Start": "prof_requests_started(CALL_Start, span.on, 1, request);",
    "Startall": "prof_requests_started(CALL_Startall, span.on, count, array_of_requests);",
}


def operation_name(f):
    """Returns the operation of a function: Bcast for Ibcast_c and Bcast_init."""
    short = f.short.removesuffix("_c").removesuffix("_init")
    return short[1:].capitalize() if is_immediate(f) else short


def is_immediate(f):
    return f.chapter in ("coll", "p2p") and "nonblocking" in f.marks and f.short.startswith("I")


def is_nonblocking(f):
    return is_immediate(f) or f.short in ("Start", "Startall")


def call_kind(f):
    """Returns the class to which the time in the function is attributed."""
    if f.short.startswith(LOCAL):
        return "OTHER"
    if f.chapter in ("p2p", "partitioned"):
        return "WAIT" if f.short.startswith(WAITS) else "P2P"
    return {"coll": "COLL", "persistent-coll": "COLL", "rma": "RMA", "io": "IO"}.get(f.chapter, "OTHER")


def write_header(api):
    calls = "".join(f"    CALL_{f.short},\n" for f in api.functions)
    return make_banner("Every MPI function as a number, for tools/prof.") + f"""
#ifndef PROF_CALLS_H
#define PROF_CALLS_H

enum prof_call {{
{calls}    CALLS
}};

#endif
"""


def write_calls(api):
    parts = [make_banner("Every MPI function, timed: see tools/prof/README.md."), '#include "prof.h"\n', _make_table(api)]
    parts += [_make_function(f) for f in api.functions]
    return "\n".join(parts)


def _make_table(api):
    rows = "".join(f'    {{"{f.name}", PROF_{call_kind(f)}, {"true" if is_nonblocking(f) else "false"}}},\n'
                   for f in api.functions)
    return "const struct prof_function prof_functions[CALLS] = {\n" + rows + "};\n"


def _make_function(f):
    arguments = ", ".join(p.name for p in f.params)
    lines = [BEFORE[f.short]] if f.short in BEFORE else []
    lines += [f"struct prof_span span = prof_begin(CALL_{f.short});",
              wrap_call(f"const {f.returns} returned = P{f.name}({arguments});"), "prof_end(&span);"]
    if call_kind(f) == "COLL" and f.chapter == "coll" and not is_nonblocking(f) and operation_name(f) in COLLECTIVES:
        lines += ["if (span.on && !returned)", "    prof_collective(&span, comm);"]
    after = _statement_after(f)
    if after:
        condition, statement = after
        lines += [f"if ({condition})", "    " + wrap_call(statement, 12)]
    lines.append("return returned;")
    return wrap_prototype("PROF_API " + f.prototype()) + "\n{\n" + "\n".join("    " + line for line in lines) + "\n}\n"


def _statement_after(f):
    """Returns (condition, statement) to execute after the call, or None."""
    if f.short in AFTER:
        return "!returned", AFTER[f.short]
    operation = _make_operation(f)
    if not operation:
        return None
    operation = f"&(struct prof_op){{.call = CALL_{f.short}, {operation}}}"
    if f.short.removesuffix("_c").endswith("_init"):
        return "!returned", f"prof_store_request(*request, {operation});"
    return "span.on && !returned", f"prof_record_transfer({operation});"


def _make_operation(f):
    """Returns the fields of a struct prof_op, or None if the function transfers no data."""
    names = {p.name for p in f.params}
    if f.chapter in ("coll", "persistent-coll"):
        return _make_collective(f, names) if operation_name(f) in COLLECTIVES else None
    if f.chapter not in ("p2p", "partitioned") or not names & {"buf", "sendbuf"}:
        return None
    fields = []
    if "dest" in names:
        fields.append(f".to = prof_world_rank(comm, dest), .send = {_make_block(f, names, 'send')}")
    if "source" in names:
        fields.append(f".from = prof_world_rank(comm, source), .receive = {_make_block(f, names, 'recv')}")
    if "message" in names:
        fields.append(f".from = PROF_OUTSIDE, .receive = {_make_block(f, names, 'recv')}")
    if {"buf", "dest", "source"} <= names:  # one buffer for both directions is used once
        fields.append(".replaces = true")
    return ", ".join(fields)


def _make_block(f, names, side):
    if side + "buf" in names:
        return f"prof_make_block({side}buf, {side}count, {side}type)"
    if "partitions" in names:
        return "prof_make_blocks(buf, count, datatype, partitions)"
    return "prof_make_block(buf, count, datatype)"


def _make_collective(f, names):
    send, receive = COLLECTIVES[operation_name(f)]
    fields = [".collective = true"]
    if send:
        fields.append(f".send = {_make_collective_block(f, names, 'send', send)}, .receive = {_make_collective_block(f, names, 'recv', receive)}")
    if "buffer" in names:
        fields.append(".replaces = true")
    return ", ".join(fields)


def _make_collective_block(f, names, side, rule):
    rule, _, owner = rule.partition("@")
    rule, _, group = rule.partition(" ")
    buffer = side + "buf" if side + "buf" in names else "buffer"
    count = next(n for n in (side + "counts", side + "count", "recvcounts", "recvcount", "count") if n in names)
    dtype = next(n for n in (side + "types", side + "type", "datatype") if n in names)
    wide = "_c" if f.name.endswith("_c") else ""
    if rule == "one":
        text = f"prof_make_block({buffer}, {count}, {dtype})"
    elif rule == "each":
        text = f"prof_make_blocks({buffer}, {count}, {dtype}, {GROUPS[group]}(comm))"
    else:
        text = f"{RULES[rule]}{wide}({buffer}, {count}, {dtype}, {GROUPS[group]}(comm))"
    return f"prof_has_role(comm, root, PROF_{owner}) ? {text} : PROF_NOTHING" if owner else text
