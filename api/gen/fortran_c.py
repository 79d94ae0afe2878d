# Writes the C functions behind Fortran procedures. Each converts arguments, calls MPI_X (so that a profiling tool in C sees the calls of
# Fortran programs) and converts results. The file is compiled a second time with PROFILING for the names pmpi_*.
#
# SPDX-License-Identifier: Apache-2.0

from . import fortran
from .text import make_banner, wrap_call, wrap_prototype

PARTS = ("core", "coll", "large", "rest")
# Collectives and exchanges whose buffers are single blocks: an array section is described by a derived datatype. Reductions need the
# original datatype, so their sections are copied, as are buffers of several blocks.
SINGLE_BLOCK = {"Bcast", "Ibcast", "Bcast_init", "Sendrecv", "Isendrecv", "Sendrecv_replace", "Isendrecv_replace"}

COUNTS = ("count", "sendcount", "recvcount", "origin_count", "result_count")
# Partitioned messages of array sections: statements before and after the call.
PARTITIONS = {
    "Pready": (["fort_partitions_ready(*request, *partition, *partition);"], []),
    "Pready_range": (["fort_partitions_ready(*request, *partition_low, *partition_high);"], []),
    "Pready_list": (["for (int i = 0; i < *length; i++)",
                     "    fort_partitions_ready(*request, array_of_partitions[i], array_of_partitions[i]);"], []),
    "Parrived": ([], ["if (!rc && *flag)", "    fort_partition_arrived(*request, *partition);"]),
}
ADDRESS_ONLY = ("Get_address", "Free_mem", "Win_detach")


def find_part(f):
    if fortran.is_large(f):
        return "large"
    return {"p2p": "core", "group/comm": "core", "datatype": "core", "topo": "core", "coll": "coll",
            "persistent-coll": "coll"}.get(f.chapter, "rest")


def write_part(api, part):
    text = [make_banner(f"Fortran procedures in C, part '{part}'."), '#include "fortran/fort.h"\n']
    for f in fortran.list_functions(api):
        if find_part(f) == part:
            text += _make_procedures(f)
    return "\n".join(text)


def _make_procedures(f):
    """Returns the C functions of a procedure: two if it has a choice buffer, which is an address in mpif.h and a descriptor in mpi_f08,
    else one."""
    low = f.name.lower()
    if f.short in fortran.BY_HAND:
        return []
    result = []
    if fortran.is_choice(f):
        if not fortran.is_large(f):
            result += [_make_function(f, low + "_", False), _make_aliases(low)]
        if fortran.is_in_f08(f):
            result.append(_make_function(f, low + "_f08ts_", True))
    elif not fortran.is_large(f):
        result += [_make_function(f, low + "_", False), _make_aliases(low)]
        result.append(f"FORT_ALIAS(N({low}_f08_), N({low}_))\n")
    elif fortran.is_in_f08(f):
        result.append(_make_function(f, low + "_f08_", False))
    return result


def _make_aliases(low):
    return (f"FORT_ALIAS(N({low}), N({low}_))\nFORT_ALIAS(N({low}__), N({low}_))\n"
            f"FORT_ALIAS(U({low.upper()}), N({low}_))\n")


def _make_function(f, name, descriptors):
    body = Body(f, descriptors)
    for p in fortran.list_parameters(f):
        getattr(body, "add_" + fortran.parameter_role(f, p))(p)
    arguments = ", ".join(body.arguments + ["MPI_Fint *ierror"] + body.lengths)
    head = wrap_prototype(f"void N({name})({arguments})")
    call = wrap_call(f"rc = C({f.name})({', '.join(body.passed)});")
    first, last = PARTITIONS.get(f.short, ([], []))
    lines = ["int rc;", *body.before, *first]
    if body.guards:
        lines.append(f"rc = {' | '.join(body.guards)};")
        lines += ["if (!rc)", "    " + call]
    else:
        lines.append(call)
    lines += [*body.after, *last, "FORT_RETURN(rc);"]
    return head + "\n{\n" + "\n".join("    " + line for line in lines) + "\n}\n"


class Body:
    """The parts of one C function, collected parameter by parameter; add_ROLE adds a parameter with this role."""

    def __init__(self, f, descriptors):
        self.f = f
        self.descriptors = descriptors
        self.arguments, self.lengths, self.before, self.passed, self.after, self.guards = [], [], [], [], [], []

    def add_value(self, p):
        self.arguments.append(f"const {p.base} *{p.name}")
        counts = self._find_section_names(0) if self.descriptors else ()
        self.passed.append(f"({p.base}){p.name}_" if p.name in counts else "*" + p.name)

    def add_pointer(self, p):
        self.arguments.append(f"{p.base} *{p.name}")
        self.passed.append(p.name)

    def add_array(self, p):
        if p.name == "ranges":
            self.arguments.append("int (*ranges)[3]")
        else:
            self.arguments.append(f"{'const ' if p.const else ''}{p.base} *{p.name}")
        self.passed.append(p.name)

    def add_logical_array(self, p):
        self.add_array(p)  # gfortran's LOGICAL is a C int of 0 or 1

    def add_logical_in(self, p):
        self.arguments.append(f"const MPI_Fint *{p.name}")
        self.passed.append(f"*{p.name} != 0")

    def add_logical_out(self, p):
        self.add_pointer(p)
        self.after += [f"if (!rc)", f"    *{p.name} = *{p.name} != 0;"]

    def add_index_out(self, p):
        self.add_pointer(p)
        self.after += [f"if (!rc && *{p.name} != MPI_UNDEFINED)", f"    ++*{p.name};"]

    def add_indices(self, p):
        self.add_array(p)
        self.after += ["if ((!rc || rc == MPI_ERR_IN_STATUS) && *outcount != MPI_UNDEFINED)",
                       f"    fort_count_from_one({p.name}, *outcount);"]

    def add_weights(self, p):
        self.arguments.append(f"{'const ' if p.const else ''}int *{p.name}")
        self.passed.append(f"fort_weights({p.name})")

    def add_status(self, p):
        const = "const " if p.const else ""
        base = p.base
        self.arguments.append(f"{const}{base} *{p.name}")
        takes_ignore = base == "MPI_Status" and not p.const and not self.f.short.startswith("Status_")
        self.passed.append(f"fort_status({p.name})" if takes_ignore else p.name)

    def add_statuses(self, p):
        self.add_status(p)

    def add_handle_in(self, p):
        self.arguments.append(f"const MPI_Fint *{p.name}")
        if self.descriptors and p.base == "MPI_Datatype" and p.name in self._find_section_names(1):
            self.passed.append(p.name + "_")
        else:
            self.passed.append(f"{_f2c_name(p.base)}(*{p.name})")

    def add_handle_out(self, p):
        self._add_handle(p, f"{_null_handle(p.base)}")

    def add_handle_inout(self, p):
        self._add_handle(p, f"{_f2c_name(p.base)}(*{p.name})")

    def _add_handle(self, p, start):
        self.arguments.append(f"MPI_Fint *{p.name}")
        self.before.append(f"{p.base} {p.name}_ = {start};")
        self.passed.append(f"&{p.name}_")
        if fortran.parameter_role(self.f, p) == "handle_out":
            self.after += ["if (!rc)", f"    *{p.name} = {_c2f_name(p.base)}({p.name}_);"]
        elif p.base == "MPI_Request":
            starts = "true" if self.f.short == "Start" else "false"
            if starts == "true":
                self.before.append(f"fort_request_starts(*{p.name});")
            self.after.append(f"fort_request_out({p.name}, {p.name}_);")
        else:
            self.after.append(f"*{p.name} = {_c2f_name(p.base)}({p.name}_);")

    def add_handles_in(self, p):
        self._add_handles(p)

    def add_handles_inout(self, p):
        self._add_handles(p)
        if self.f.short == "Startall":
            self.before.append(f"for (size_t i = 0; i < {p.name}_n; i++)\n        fort_request_starts({p.name}[i]);")
        self.after.append(f"fort_{_handle_word(p.base)}s_out({p.name}, {p.name}_, {p.name}_n);")
        self.after.append(self.after.pop(-2))  # the array is freed after the handles are written back

    def add_handles_out(self, p):
        self._add_handles(p)
        self.after.insert(len(self.after) - 1, f"if (!rc)\n        fort_{_handle_word(p.base)}s_out({p.name}, {p.name}_, {p.name}_n);")

    def _add_handles(self, p):
        self.arguments.append(f"{'const ' if p.const else ''}MPI_Fint *{p.name}")
        self.before.append(f"const size_t {p.name}_n = {self._handles_length(p)};")
        later = p.const and self._has_request()  # the library reads the array until the request completes
        few = "NULL" if later else p.name + "_few"
        if not later:
            self.before.append(f"{p.base} {p.name}_few[FORT_FEW];")
        fill = "false" if fortran.parameter_role(self.f, p) == "handles_out" else "true"
        self.before.append(f"{p.base} *{p.name}_ = fort_{_handle_word(p.base)}s_in({p.name}, {p.name}_n, {few}, {fill});")
        self.passed.append(p.name + "_")
        self.after.append(f"fort_free_after_request({p.name}_, rc, request_);" if later else f"fort_room_free({p.name}_, {few});")

    def _handles_length(self, p):
        given = fortran.handles_length(p)
        if given:
            return f"fort_length({given})"
        for name in ("count", "incount"):
            if any(q.name == name for q in self.f.params):
                return f"fort_length(*{name})"
        neighbor = "true" if "eighbor" in self.f.name else "false"
        sending = "true" if p.name == "sendtypes" else "false"
        buffer = "sendbuf" + ("->base_addr" if self.descriptors else "")
        return f"fort_peers(*comm, {neighbor}, {sending}, {buffer})"

    def add_string_in(self, p):
        trim = "fort_string_stripped" if self.f.chapter == "info" else "fort_string"
        if self.descriptors:
            self.arguments.append(f"CFI_cdesc_t *{p.name}")
            text = f"{p.name}->base_addr, {p.name}->elem_len"
        else:
            self.arguments.append(f"const char *{p.name}")
            self.lengths.append(f"size_t {p.name}_len")
            text = f"{p.name}, {p.name}_len"
        self.before.append(f"char *{p.name}_ = {trim}({text});")
        self.passed.append(p.name + "_")
        self.after.append(f"free({p.name}_);")

    def add_string_out(self, p):
        size = fortran.string_size(p)
        self.arguments.append(f"char *{p.name}")
        self.lengths.append(f"size_t {p.name}_len")
        self.before.append(f"char {p.name}_[{size}] = {{0}};")
        self.passed.append(p.name + "_")
        self.after += ["if (!rc)", f"    fort_string_out({p.name}, {p.name}_len, {p.name}_);"]

    def add_baseptr(self, p):
        self.arguments.append(f"void *{p.name}")
        self.passed.append(p.name)

    def add_choice(self, p):
        if not self.descriptors:
            self.arguments.append(f"void *{p.name}")
            self.passed.append(f"fort_buffer({p.name})")
            return
        self.arguments.append(f"CFI_cdesc_t *{p.name}")
        if self.f.short in ADDRESS_ONLY:
            self.passed.append(f"fort_buffer({p.name}->base_addr)")
            return
        self.before.append(f"struct fort_section {p.name}_;")
        self.passed.append(f"{p.name}_.base")
        measured = self._find_section_pair(p)
        if measured:
            count, dtype = measured
            self.before.append(f"MPI_Datatype {dtype.name}_ = PMPI_Type_f2c(*{dtype.name});")
            self.before.append(f"MPI_Count {count.name}_ = *{count.name};")
            self.guards.append(f"fort_section_type(&{p.name}_, {p.name}, &{count.name}_, &{dtype.name}_)")
            self.after.append(f"fort_section_type_end(&{p.name}_);")
            return
        back = "false" if p.const else "true"
        self.guards.append(f"fort_section_copy(&{p.name}_, {p.name}, {self._buffer_lifetime()}, {back})")
        if self._buffer_lifetime() == "FORT_CALL":
            self.after.append(f"fort_section_copy_end(&{p.name}_);")
        else:
            if self.f.chapter == "partitioned":
                self.after += ["if (!rc)", f"    fort_section_partitions(&{p.name}_, *count, PMPI_Type_f2c(*datatype));"]
            self.after.append(f"fort_section_copy_until_done(&{p.name}_, rc, {'request_' if self._has_request() else 'NULL'});")

    def _has_request(self):
        """Returns True if the call returns a request."""
        return any(q.base == "MPI_Request" and q.is_pointer for q in self.f.params)

    def _buffer_lifetime(self):
        """Returns how long MPI may use a buffer: during the call, until the request completes, or for an unknown time."""
        f = self.f
        if any(q.base == "MPI_Win" for q in f.params) or "attach" in f.name:
            return "FORT_BEYOND"
        if self._has_request():
            return "FORT_PERSISTENT" if "_init" in f.name else "FORT_REQUEST"
        return "FORT_CALL"

    def _find_section_pair(self, p):
        """Returns the parameters (count, datatype) if the buffer is one block of them and may be described by another datatype; else None."""
        f = self.f
        short = f.short.removesuffix("_c")
        if f.chapter not in ("p2p", "io", "rma") and short not in SINGLE_BLOCK:
            return None
        at = f.params.index(p) + 1
        rest = f.params[at:at + 2]
        if len(rest) == 2 and rest[0].name in COUNTS and rest[1].handle == "dtype":
            return rest
        return None

    def _find_section_names(self, which):
        """Returns the names of the counts (0) or datatypes (1) that may be replaced by those of an array section."""
        pairs = [self._find_section_pair(p) for p in self.f.params if fortran.parameter_role(self.f, p) == "choice"]
        return {pair[which].name for pair in pairs if pair}


def _handle_word(base):
    return {"MPI_Datatype": "type", "MPI_Request": "request", "MPI_Info": "info"}[base]


def _handle_stem(base):
    return "Type" if base == "MPI_Datatype" else base.removeprefix("MPI_")


def _f2c_name(base):
    return f"PMPI_{_handle_stem(base)}_f2c"


def _c2f_name(base):
    return f"PMPI_{_handle_stem(base)}_c2f"


def _null_handle(base):
    return "MPI_DATATYPE_NULL" if base == "MPI_Datatype" else base.upper() + "_NULL"
