# Writes bodies.c: the implementations that differ only in the form of the call, and those that only forward their
# arguments (FORWARDS). A collective operation is described by one
# function (src/api/coll.h: args_*) and has a blocking, a nonblocking and a persistent form, each of them also for
# neighbours. A read or write of a file (src/api/file.h: file_read_call, file_write_call) is individual or collective, blocking or
# nonblocking, at an explicit offset, at the individual or at the shared file pointer; a collective one can also be split into a begin and
# an end.
#
# SPDX-License-Identifier: Apache-2.0

import re

from .impl import declare_parameter, list_implemented, make_prototype
from .model import HANDLES
from .text import make_banner, wrap_call, wrap_prototype

REDUCTIONS = ("reduce", "allreduce", "scan", "exscan")
MOVES = ("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
         "alltoallw", "reduce_scatter", "reduce_scatter_block")
PLACES = {"": "AT_POINTER", "at": "AT_OFFSET", "shared": "AT_SHARED", "ordered": "AT_ORDERED"}

# Rows are (pattern of the function's name, call): the function returns the result of the call; or (pattern, struct, call, result): the
# call makes an object in `made`, and the function returns the result. A call that ends with a semicolon is a statement, after which the
# function returns MPI_SUCCESS. Placeholders: {1}: the first group of the pattern; {1u}, {1l}: the same in upper or lower case; {0}: the
# name; {handle}: prefix of the function that returns the handle of the first parameter; $name: a parameter; $0: the first parameter; $*:
# all parameters that the call does not name. The last parameter of a function that makes an object is the output.
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
    ("(Comm|Group)_(size|rank)", "*${2} = $0->{2};"),
    ("Comm_group", "*$group = group_handle(group_retain($comm->group));"),
    ("(?:Win|File)_get_group", "*$group = group_handle(group_retain($0->comm->group));"),
    ("Comm_test_inter", "*$flag = $comm->remote != NULL;"),
    ("Comm_get_parent", "*$parent = the_proc->parent ? comm_handle(the_proc->parent) : MPI_COMM_NULL;"),
    ("Comm_(i?dup)", "impl_Comm_{1}_with_info($comm, NULL, $*)"),
    ("Comm_is_revoked", "net_progress($comm->proc->net); *$flag = comm_is_revoked($comm);"),
    ("Comm_agree", "ft_agree($*)"),
    ("Comm_get_failed", "group_return_failed($comm, false, $*)"),
    ("Comm_failure_get_acked", "group_return_failed($comm, true, $*)"),
    ("Comm_set_info", "hints_apply(&$comm->info, $info)"),
    ("Comm_get_info", "info", "hints_build_used($comm->info, &made)", "info_return_handle(rc, made, $*)"),
    ("Win_set_info", "win_hints_apply($*)"),
    ("Win_get_info", "info", "win_hints_used($win, &made)", "info_return_handle(rc, made, $*)"),
    ("File_get_info", "info", "io_hints_used(&$fh->hints, $fh->name, $fh->naggregators, &made)",
     "info_return_handle(rc, made, $*)"),
    ("Session_get_info", "info", "info_copy($session->info, &made)", "info_return_handle(rc, made, $*)"),
    ("Info_(create|create_env)", "info", "info_{1}($*, &made)", "info_return_handle(rc, made, $*)"),
    ("Info_dup", "info", "info_copy($info, &made)", "info_return_handle(rc, made, $*)"),
    ("Info_get_nkeys", "*$nkeys = $info->count;"),
    ("(Comm|Type|Win)_set_name", "object_name_set($0->name, $1)"),
    ("(Comm|Win)_get_name", 'object_name_get($0 ? $0->name : "MPI_{1u}_NULL", $*)'),
    ("Type_get_name", 'object_name_get($0 ? $0->name : "MPI_DATATYPE_NULL", $*)'),
    ("(Comm|Type)_get_attr", "attr_return_value(ATTR_{1u}, $0->attrs, $*)"),
    ("Status_(?:get_)(source|tag|error)", "*${1} = $status->MPI_{1u};"),
    ("Status_set_(source|tag|error)", "$status->MPI_{1u} = ${1};"),
    ("Status_set_cancelled", "status_set_cancelled($status, $flag != 0);"),
    ("Status_(c2f|f2c|c2f08|f082c|f2f08|f082f)", "memcpy($1, $0, sizeof(MPI_Status));"),
    ("Test_cancelled", "*$flag = status_cancelled($status);"),
    ("Get_(count|elements)", "dt_get_{1}($datatype, status_bytes($status), $count);"),
    ("Type_size", "*$size = $datatype->size;"),
    ("Type_get_(|true_)extent", "*$1 = $0->{1}lb; *$2 = $0->{1}extent;"),
    ("Type_(match_size)", "dtype", "dtype_{1}($*, &made)", "type_return_handle(rc, made, $*)"),
    ("Group_compare", "group_compare($*)"),
    ("Group_translate_ranks", "$n > 0 ? group_translate($group1, $n, $ranks1, $group2, $ranks2) : MPI_SUCCESS"),
    ("Get_version", "*$version = MPI_VERSION; *$subversion = MPI_SUBVERSION;"),
    ("Abi_get_version", "*$abi_major = MPI_ABI_VERSION; *$abi_minor = MPI_ABI_SUBVERSION;"),
    ("Get_address", "*$address = (MPI_Aint)$location;"),
    ("Query_cuda_support", "!gpu_is_off()"),
    ("Initialized", "*$flag = api_world_state() != WORLD_NOT_YET;"),
    ("Finalized", "*$flag = api_world_state() == WORLD_DONE;"),
    ("Query_thread", "*$provided = the_proc->thread_level;"),
    ("Is_thread_main", "*$flag = pthread_equal(pthread_self(), the_proc->main_thread) != 0;"),
    ("Error_class", "error_class_of($*)"),
    ("Open_port", "port_open(the_proc, PORT_NETWORK, $port_name)"),
    ("Close_port", "port_close(the_proc, $*)"),
    ("Session_get_num_psets", "*$npset_names = PSET_COUNT;"),
    ("Topo_test", "*$status = $comm->topology ? $comm->topology->kind : MPI_UNDEFINED;"),
    ("Op_create", "op", "op_new($user_fn, NULL, $commute != 0, &made)", "op_return_handle(rc, made, $*)"),
    ("Op_create_c", "op", "op_new(NULL, $user_fn, $commute != 0, &made)", "op_return_handle(rc, made, $*)"),
    ("Op_commutative", "*$commute = $op->commutative;"),
    ("R(put|get)", "rma_operate(RMA_IS_{1u}, $*, NULL, $win, $request)"),
    ("Accumulate", "rma_operate(RMA_IS_ACCUMULATE, $*, NULL)"),
    ("Raccumulate", "rma_operate(RMA_IS_ACCUMULATE, $*)"),
    ("Get_accumulate", "rma_get_accumulate($*, NULL)"),
    ("Rget_accumulate", "rma_get_accumulate($*)"),
    ("Win_(flush|flush_all)", "win_{1}($win, $*, false)"),
    ("Win_flush_local", "win_flush($win, $rank, true)"),
    ("Win_flush_local_all", "win_flush_all($win, true)"),
    ("Win_detach", "win_detach($*)"),
    ("Win_create", "win", "win_make_checked($comm, MPI_WIN_FLAVOR_CREATE, $base, $size, $disp_unit, $info, &made)",
     "win_return_handle(rc, made, NULL, $*)"),
    ("Win_allocate", "win", "win_make_checked($comm, MPI_WIN_FLAVOR_ALLOCATE, NULL, $size, $disp_unit, $info, &made)",
     "win_return_handle(rc, made, $baseptr, $*)"),
    ("Win_allocate_shared", "win", "win_make_checked($comm, MPI_WIN_FLAVOR_SHARED, NULL, $size, $disp_unit, $info, &made)",
     "win_return_handle(rc, made, $baseptr, $*)"),
    ("Win_create_dynamic", "win", "win_make_checked($comm, MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM, 0, 1, $info, &made)",
     "win_return_handle(rc, made, NULL, $*)"),
    ("File_open", "file", "file_open($*, &made)", "file_return_handle(rc, made, $*)"),
    ("File_delete", "file_delete($filename)"),
    ("File_set_atomicity", "file_set_atomicity($fh, $flag != 0)"),
    ("File_get_atomicity", "*$flag = $fh->atomic;"),
    ("File_get_amode", "*$amode = $fh->amode;"),
    ("File_get_type_extent", "datarep_file_extent($fh->view.rep, $datatype, $extent)"),
    ("Comm_create_from_group", "comm", "comm_create_from_group(the_proc, $*, &made)", "comm_return_handle(rc, made, $*)"),
    ("Comm_join", "comm", "meet_join_socket(the_proc, $*, &made)", "comm_return_handle(rc, made, $*)"),
    ("Dist_graph_create_adjacent", "comm", # a rank knows only its own neighbours, so that reorder has no effect
     "dist_graph_create_adjacent($comm_old, $indegree, $sources, $sourceweights, $outdegree, $destinations, $destweights, $info, &made)",
     "comm_return_handle(rc, made, $*)"),
    ("Dist_graph_create", "comm",
     "dist_graph_create($comm_old, $n, $sources, $degrees, $destinations, $weights, $info, &made)",
     "comm_return_handle(rc, made, $*)"),
    ("T_(cvar|pvar)_get_num", "TOOL_OUT($0, tool_{1}_count());"),
    ("T_event_get_num", "TOOL_OUT($num_events, EVENT_TYPES);"),
    ("T_source_get_num", "TOOL_OUT($num_sources, 1);"),
    ("T_category_changed", "TOOL_OUT($update_number, 0);"),
)]

FILE_CALL = re.compile(r"File_(i?)(read|write)(?:_(at|shared|ordered))?(_all)?(?:_(begin|end))?")


def parse_collective(f):
    """Returns (operation, form, True for a neighbourhood collective), or None if the function is no collective. The form is run, start or
    init."""
    name = f.short.lower()
    form = "run"
    if name.endswith("_init"):
        name, form = name.removesuffix("_init"), "init"
    elif name.startswith("i"):
        name, form = name[1:], "start"
    neighbour = name.startswith("neighbor_")
    name = name.removeprefix("neighbor_")
    return (name, form, neighbour) if name in REDUCTIONS + MOVES else None


def argument_text(f, p):
    """Returns the argument for an args_* function. Displacements, which are always wide, are passed as a struct ivec too."""
    return f"ivec_from_int64({p.name})" if declare_parameter(f, p).startswith(("const MPI_Aint ", "const MPI_Count ")) else p.name


def make_collective_body(f, operation, form, neighbour):
    given = [argument_text(f, p) for p in f.params if p.name not in ("info", "request")]
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


def make_file_body(f, match):
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


def find_forward_row(f):
    """Returns (match, templates) of the row of FORWARDS for the function, or None."""
    for pattern, *templates in FORWARDS:
        match = pattern.fullmatch(f.short)
        if match:
            return match, templates
    return None


def expand_template(f, match, template, params):
    """Returns the C text of a template; `params` are the parameters that $* stands for."""
    forms = {"": str, "u": str.upper, "l": str.lower}
    text = template.replace("{handle}", f"{f.params[0].handle}_handle" if f.params else "")
    text = re.sub(r"\{(\d)([ul]?)\}", lambda m: forms[m[2]](match[int(m[1])]), text)
    named = {f.params[int(n)].name if n.isdigit() else n for n in re.findall(r"\$(\w+)", text)}
    rest = "".join(", " + argument_text(f, p) for p in params if p.name not in named)
    if not rest:
        text = text.replace("$*, ", "")
    text = text.replace(", $*", rest).replace("$*", rest.removeprefix(", "))
    return re.sub(r"\$(\w+)", lambda m: f.params[int(m[1])].name if m[1].isdigit() else f.param(m[1]).name, text)


def make_forward_body(f, match, templates):
    if templates[0].endswith(";"):
        statements = expand_template(f, match, templates[0], f.params).split("; ")
        return [*(f"    {s.removesuffix(';')};" for s in statements), "    return MPI_SUCCESS;"]
    if len(templates) == 1:
        return [wrap_call(f"    return {expand_template(f, match, templates[0], f.params)};")]
    struct, call, result = templates
    return [f"    struct {struct} *made = NULL;",
            wrap_call(f"    int rc = {expand_template(f, match, call, f.params[:-1])};"),
            f"    return {expand_template(f, match, result, f.params[-1:])};"]


def make_bodies(api):
    """Yields (function, lines of its body)."""
    for f in list_implemented(api):
        forward = find_forward_row(f)
        if forward:
            yield f, make_forward_body(f, *forward)
            continue
        collective, file_call = parse_collective(f), FILE_CALL.fullmatch(f.short)
        if collective:
            yield f, make_collective_body(f, *collective)
        elif file_call:
            yield f, make_file_body(f, file_call)


def list_generated_names(api):
    return {f.short for f, _ in make_bodies(api)}


def write_bodies(api):
    parts = [make_banner("Implementations that differ only in the form of the call, or only forward their arguments."),
             '#include "api/coll.h"\n#include "api/file.h"\n#include "api/forward.h"\n#include "impl.h"\n']
    for f, lines in make_bodies(api):
        parts.append("\n".join([wrap_prototype(make_prototype(f)), "{", *lines, "}\n"]))
    return "\n".join(parts)
