# Writes the C side of Fortran: one C function for each Fortran procedure, which converts arguments, calls MPI_X (so that
# a C tool sees Fortran's calls) and converts results. Compiled a second time with PROFILING for the pmpi_ names.
#
# SPDX-License-Identifier: Apache-2.0

from . import fortran
from .text import banner, wrap_call, wrap_prototype

PARTS = ("core", "coll", "large", "rest")
# Reductions need their datatype as it is, so a section travels through a copy; so do buffers of several blocks.
SINGLE_BLOCK = {"Bcast", "Ibcast", "Bcast_init", "Sendrecv", "Isendrecv", "Sendrecv_replace", "Isendrecv_replace"}

COUNTS = ("count", "sendcount", "recvcount", "origin_count", "result_count")
# A section whose partitions become ready, or arrive, one by one: statements in front of the call and after it.
PARTITIONS = {
    "Pready": (["fort_partitions_ready(*request, *partition, *partition);"], []),
    "Pready_range": (["fort_partitions_ready(*request, *partition_low, *partition_high);"], []),
    "Pready_list": (["for (int i = 0; i < *length; i++)",
                     "    fort_partitions_ready(*request, array_of_partitions[i], array_of_partitions[i]);"], []),
    "Parrived": ([], ["if (!rc && *flag)", "    fort_partition_arrived(*request, *partition);"]),
}
ADDRESS_ONLY = ("Get_address", "Free_mem", "Win_detach")


def part_of(f):
    if fortran.is_large(f):
        return "large"
    return {"p2p": "core", "group/comm": "core", "datatype": "core", "topo": "core", "coll": "coll",
            "persistent-coll": "coll"}.get(f.chapter, "rest")


def write_part(api, part):
    text = [banner(f"Fortran procedures in C, part '{part}'."), '#include "fortran/fort.h"\n']
    for f in fortran.functions(api):
        if part_of(f) == part:
            text += _procedures(f)
    return "\n".join(text)


def _procedures(f):
    """A choice buffer is an address in mpif.h and a descriptor in mpi_f08; without one, one function serves both."""
    low = f.name.lower()
    if f.short in fortran.BY_HAND:
        return []
    result = []
    if fortran.is_choice(f):
        if not fortran.is_large(f):
            result += [_function(f, low + "_", False), _spellings(low)]
        if fortran.in_f08(f):
            result.append(_function(f, low + "_f08ts_", True))
    elif not fortran.is_large(f):
        result += [_function(f, low + "_", False), _spellings(low)]
        result.append(f"FORT_ALIAS(N({low}_f08_), N({low}_))\n")
    elif fortran.in_f08(f):
        result.append(_function(f, low + "_f08_", False))
    return result


def _spellings(low):
    return (f"FORT_ALIAS(N({low}), N({low}_))\nFORT_ALIAS(N({low}__), N({low}_))\n"
            f"FORT_ALIAS(U({low.upper()}), N({low}_))\n")


def _function(f, name, descriptors):
    body = Body(f, descriptors)
    for p in fortran.parameters(f):
        getattr(body, fortran.role(f, p))(p)
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
    """The pieces of one function, collected parameter by parameter; a method for each role."""

    def __init__(self, f, descriptors):
        self.f = f
        self.descriptors = descriptors
        self.arguments, self.lengths, self.before, self.passed, self.after, self.guards = [], [], [], [], [], []

    def value(self, p):
        self.arguments.append(f"const {p.base} *{p.name}")
        counts = self._section_names(0) if self.descriptors else ()
        self.passed.append(f"({p.base}){p.name}_" if p.name in counts else "*" + p.name)

    def pointer(self, p):
        self.arguments.append(f"{p.base} *{p.name}")
        self.passed.append(p.name)

    def array(self, p):
        if p.name == "ranges":
            self.arguments.append("int (*ranges)[3]")
        else:
            self.arguments.append(f"{'const ' if p.const else ''}{p.base} *{p.name}")
        self.passed.append(p.name)

    def logical_array(self, p):
        self.array(p)  # gfortran's LOGICAL is a C int of 0 or 1

    def logical_in(self, p):
        self.arguments.append(f"const MPI_Fint *{p.name}")
        self.passed.append(f"*{p.name} != 0")

    def logical_out(self, p):
        self.pointer(p)
        self.after += [f"if (!rc)", f"    *{p.name} = *{p.name} != 0;"]

    def index_out(self, p):
        self.pointer(p)
        self.after += [f"if (!rc && *{p.name} != MPI_UNDEFINED)", f"    ++*{p.name};"]

    def indices(self, p):
        self.array(p)
        self.after += ["if ((!rc || rc == MPI_ERR_IN_STATUS) && *outcount != MPI_UNDEFINED)",
                       f"    fort_count_from_one({p.name}, *outcount);"]

    def weights(self, p):
        self.arguments.append(f"{'const ' if p.const else ''}int *{p.name}")
        self.passed.append(f"fort_weights({p.name})")

    def status(self, p):
        const = "const " if p.const else ""
        base = p.base
        self.arguments.append(f"{const}{base} *{p.name}")
        takes_ignore = base == "MPI_Status" and not p.const and not self.f.short.startswith("Status_")
        self.passed.append(f"fort_status({p.name})" if takes_ignore else p.name)

    def statuses(self, p):
        self.status(p)

    def handle_in(self, p):
        self.arguments.append(f"const MPI_Fint *{p.name}")
        if self.descriptors and p.base == "MPI_Datatype" and p.name in self._section_names(1):
            self.passed.append(p.name + "_")
        else:
            self.passed.append(f"{_f2c(p.base)}(*{p.name})")

    def handle_out(self, p):
        self._handle(p, f"{_null(p.base)}")

    def handle_inout(self, p):
        self._handle(p, f"{_f2c(p.base)}(*{p.name})")

    def _handle(self, p, start):
        self.arguments.append(f"MPI_Fint *{p.name}")
        self.before.append(f"{p.base} {p.name}_ = {start};")
        self.passed.append(f"&{p.name}_")
        if fortran.role(self.f, p) == "handle_out":
            self.after += ["if (!rc)", f"    *{p.name} = {_c2f(p.base)}({p.name}_);"]
        elif p.base == "MPI_Request":
            starts = "true" if self.f.short == "Start" else "false"
            if starts == "true":
                self.before.append(f"fort_request_starts(*{p.name});")
            self.after.append(f"fort_request_out({p.name}, {p.name}_);")
        else:
            self.after.append(f"*{p.name} = {_c2f(p.base)}({p.name}_);")

    def handles_in(self, p):
        self._handles(p)

    def handles_inout(self, p):
        self._handles(p)
        if self.f.short == "Startall":
            self.before.append(f"for (size_t i = 0; i < {p.name}_n; i++)\n        fort_request_starts({p.name}[i]);")
        self.after.append(f"fort_{_word(p.base)}s_out({p.name}, {p.name}_, {p.name}_n);")
        self.after.append(self.after.pop(-2))  # write back before the room is given back

    def handles_out(self, p):
        self._handles(p)
        self.after.insert(len(self.after) - 1, f"if (!rc)\n        fort_{_word(p.base)}s_out({p.name}, {p.name}_, {p.name}_n);")

    def _handles(self, p):
        self.arguments.append(f"{'const ' if p.const else ''}MPI_Fint *{p.name}")
        self.before.append(f"const size_t {p.name}_n = {self._length(p)};")
        later = p.const and self._has_request()  # C reads the array until the request completes
        few = "NULL" if later else p.name + "_few"
        if not later:
            self.before.append(f"{p.base} {p.name}_few[FORT_FEW];")
        fill = "false" if fortran.role(self.f, p) == "handles_out" else "true"
        self.before.append(f"{p.base} *{p.name}_ = fort_{_word(p.base)}s_in({p.name}, {p.name}_n, {few}, {fill});")
        self.passed.append(p.name + "_")
        self.after.append(f"fort_free_after_request({p.name}_, rc, request_);" if later else f"fort_room_free({p.name}_, {few});")

    def _length(self, p):
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

    def string_in(self, p):
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

    def string_out(self, p):
        size = fortran.string_size(p)
        self.arguments.append(f"char *{p.name}")
        self.lengths.append(f"size_t {p.name}_len")
        self.before.append(f"char {p.name}_[{size}] = {{0}};")
        self.passed.append(p.name + "_")
        self.after += ["if (!rc)", f"    fort_string_out({p.name}, {p.name}_len, {p.name}_);"]

    def baseptr(self, p):
        self.arguments.append(f"void *{p.name}")
        self.passed.append(p.name)

    def choice(self, p):
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
        measured = self._section(p)
        if measured:
            count, dtype = measured
            self.before.append(f"MPI_Datatype {dtype.name}_ = PMPI_Type_f2c(*{dtype.name});")
            self.before.append(f"MPI_Count {count.name}_ = *{count.name};")
            self.guards.append(f"fort_section_type(&{p.name}_, {p.name}, &{count.name}_, &{dtype.name}_)")
            self.after.append(f"fort_section_type_end(&{p.name}_);")
            return
        back = "false" if p.const else "true"
        self.guards.append(f"fort_section_copy(&{p.name}_, {p.name}, {self._lasts()}, {back})")
        if self._lasts() == "FORT_CALL":
            self.after.append(f"fort_section_copy_end(&{p.name}_);")
        else:
            if self.f.chapter == "partitioned":
                self.after += ["if (!rc)", f"    fort_section_partitions(&{p.name}_, *count, PMPI_Type_f2c(*datatype));"]
            self.after.append(f"fort_section_copy_until_done(&{p.name}_, rc, {'request_' if self._has_request() else 'NULL'});")

    def _has_request(self):
        """Does the call hand out a request?"""
        return any(q.base == "MPI_Request" and q.is_pointer for q in self.f.params)

    def _lasts(self):
        """For how long a buffer belongs to MPI: this call, until its request completes, or longer than we can follow."""
        f = self.f
        if any(q.base == "MPI_Win" for q in f.params) or "attach" in f.name:
            return "FORT_BEYOND"
        if self._has_request():
            return "FORT_PERSISTENT" if "_init" in f.name else "FORT_REQUEST"
        return "FORT_CALL"

    def _section(self, p):
        """(count, datatype) when one block of that much is all the buffer holds, and any datatype will do."""
        f = self.f
        short = f.short.removesuffix("_c")
        if f.chapter not in ("p2p", "io", "rma") and short not in SINGLE_BLOCK:
            return None
        at = f.params.index(p) + 1
        rest = f.params[at:at + 2]
        if len(rest) == 2 and rest[0].name in COUNTS and rest[1].handle == "dtype":
            return rest
        return None

    def _section_names(self, which):
        """The names of the counts (0) or datatypes (1) that a section may replace."""
        pairs = [self._section(p) for p in self.f.params if fortran.role(self.f, p) == "choice"]
        return {pair[which].name for pair in pairs if pair}


def _word(base):
    return {"MPI_Datatype": "type", "MPI_Request": "request", "MPI_Info": "info"}[base]


def _stem(base):
    return "Type" if base == "MPI_Datatype" else base.removeprefix("MPI_")


def _f2c(base):
    return f"PMPI_{_stem(base)}_f2c"


def _c2f(base):
    return f"PMPI_{_stem(base)}_c2f"


def _null(base):
    return "MPI_DATATYPE_NULL" if base == "MPI_Datatype" else base.upper() + "_NULL"
