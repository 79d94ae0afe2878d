# Writes Fortran text: mpif.h, the module mpi and the module mpi_f08. Constants and interfaces come from the same tables as
# mpi.h; the abstract interfaces of callbacks, which no table holds, are in fortran/callbacks.f90.
#
# SPDX-License-Identifier: Apache-2.0

from . import fortran

NOTE = "Generated from the tables in api/ by api/generate_fortran.py: edit those, not this."
LICENSE = "SPDX-License-Identifier: Apache-2.0"

# Constants that are identified by their addresses: (name, type, shape, common block, which is the C name without underscore).
SENTINELS = (
    ("MPI_BOTTOM", "INTEGER", "", "mpifort_bottom"),
    ("MPI_IN_PLACE", "INTEGER", "", "mpifort_in_place"),
    ("MPI_BUFFER_AUTOMATIC", "INTEGER", "", "mpifort_automatic"),
    ("MPI_STATUS_IGNORE", "STATUS", "(8)", "mpifort_status_ignore"),
    ("MPI_STATUSES_IGNORE", "STATUS", "(8,1)", "mpifort_statuses_ignore"),
    ("MPI_UNWEIGHTED", "INTEGER", "(1)", "mpifort_unweighted"),
    ("MPI_WEIGHTS_EMPTY", "INTEGER", "(1)", "mpifort_weights_empty"),
    ("MPI_ERRCODES_IGNORE", "INTEGER", "(1)", "mpifort_errcodes_ignore"),
    ("MPI_ARGV_NULL", "CHARACTER*1", "(1)", "mpifort_argv_null"),
    ("MPI_ARGVS_NULL", "CHARACTER*1", "(1,1)", "mpifort_argvs_null"),
)
ATTRIBUTE_FUNCTIONS = [f"MPI_{owner}_{what}" for owner in ("COMM", "TYPE", "WIN")
                       for what in ("NULL_COPY_FN", "DUP_FN", "NULL_DELETE_FN")]
OLD_FUNCTIONS = ["MPI_NULL_COPY_FN", "MPI_DUP_FN", "MPI_NULL_DELETE_FN", "MPI_CONVERSION_FN_NULL"]
# Functions whose baseptr may also be TYPE(C_PTR).
SHARED_MEMORY = ("Alloc_mem", "Win_allocate", "Win_allocate_shared", "Win_shared_query")


def list_integer_constants(api):
    """Yields (name, value) of the INTEGER constants. Fortran strings have no terminator, so the maximal lengths are smaller by one."""
    for c in api.constants:
        if c.name.startswith("MPI_T_") or c.ctype != "int":
            continue
        family = c.kind.split("/")[0]
        if c.kind.endswith("fortran-status-index-c"):
            continue
        if family == "string-length":
            yield c.name, int(c.value) - 1
        elif family in ("version-macro", "error-class", "integer-constant"):
            yield c.name, int(c.value)
    yield from (("MPI_STATUS_SIZE", 8), ("MPI_SOURCE", 1), ("MPI_TAG", 2), ("MPI_ERROR", 3))


def list_handle_constants(api):
    for c in api.constants:
        if c.kind in ("op-handle", "handle-constant", "datatype-handle"):
            yield c.name, c.ctype, int(c.value, 0)


def _kind_constants():
    return (("MPI_ADDRESS_KIND", 8), ("MPI_OFFSET_KIND", 8), ("MPI_COUNT_KIND", 8), ("MPI_INTEGER_KIND", 4))


# ---- mpif.h: fixed and free form at once, so columns 7 to 72 and no continued line

def _make_f77_constants(api):
    lines = []
    values = [*_kind_constants(), *list_integer_constants(api), *((name, value) for name, _, value in list_handle_constants(api))]
    for name, value in values:
        lines += [f"      INTEGER {name}", f"      PARAMETER ({name}={value})"]
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        lines += [f"      LOGICAL {name}", f"      PARAMETER ({name}=.FALSE.)"]
    lines += ["      INTEGER(KIND=MPI_OFFSET_KIND) MPI_DISPLACEMENT_CURRENT",
              "      PARAMETER (MPI_DISPLACEMENT_CURRENT=-1)"]
    for name, kind, dims, block in SENTINELS:
        word = "INTEGER" if kind == "STATUS" else kind
        lines += [f"      {word} {name}{dims}", f"      COMMON /{block}/ {name}"]
    return lines


def write_mpif(api):
    lines = ["! mpif.h: constants of MPI for Fortran, in fixed and free form.", f"! {NOTE}", "!", f"! {LICENSE}",
             *_make_f77_constants(api)]
    for prefix in ("", "P"):
        for name in ("MPI_WTIME", "MPI_WTICK"):
            lines += [f"      DOUBLE PRECISION {prefix}{name}", f"      EXTERNAL {prefix}{name}"]
        for name in ("MPI_AINT_ADD", "MPI_AINT_DIFF"):
            lines += [f"      INTEGER(KIND=MPI_ADDRESS_KIND) {prefix}{name}", f"      EXTERNAL {prefix}{name}"]
    lines += [f"      EXTERNAL {name}" for name in ATTRIBUTE_FUNCTIONS + OLD_FUNCTIONS]
    return "\n".join(lines) + "\n"


# ---- the module mpi

def write_mpi(api):
    """Returns the text of the module mpi. It also has the types of mpi_f08, for programs that convert handles and statuses."""
    lines = [f"! The module mpi. {NOTE}", "!", f"! {LICENSE}", "module mpi",
             f"  use mpi_f08_types, only: operator(==), operator(/=), {', '.join(('MPI_Status', *fortran.HANDLE_TYPES))}",
             "  implicit none", *_make_f77_constants(api), "  interface"]
    lines += [f"    external :: {name}" for name in ()]
    overloads = []
    for prefix in ("", "p"):
        for f in fortran.list_functions(api):
            if fortran.is_large(f):
                continue
            lines += make_mpi_interface(f, prefix + f.name.lower(), "address")
            if f.short in SHARED_MEMORY:
                overloads.append((prefix + f.name.lower(), f))
        lines += _make_sync_reg(prefix)
    lines.append("  end interface")
    for prefix in ("", "p"):
        lines += _make_sizeof(prefix)
    for name, f in overloads:
        lines += [f"  interface {name}", f"    procedure {name}"]
        lines += make_mpi_interface(f, name + "_cptr", "pointer") + ["  end interface"]
    lines += [f"  external :: {name}" for name in ATTRIBUTE_FUNCTIONS + OLD_FUNCTIONS]
    lines += ["end module mpi"]
    return "\n".join(lines) + "\n"


def _make_sync_reg(prefix):
    return [f"    subroutine {prefix}mpi_f_sync_reg(buf)", "      type(*), dimension(*) :: buf",
            "      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf", "    end subroutine"]


def _make_sizeof(prefix):
    """Returns the interface of MPI_Sizeof, which reads the size from the array descriptor; mpif.h, which has no interfaces, cannot have it.
    Both modules declare the same interface, since a program may use both."""
    name = f"{prefix.lower()}mpi_sizeof_f08ts"
    return [f"  interface {prefix}MPI_Sizeof", f'    subroutine {name}(x, size, ierror) bind(C, name="{name}_")',
            "      type(*), dimension(..), intent(in) :: x", "      integer, intent(out) :: size",
            "      integer, optional, intent(out) :: ierror", "    end subroutine", "  end interface"]


def make_mpi_interface(f, name, base):
    params = fortran.list_parameters(f)
    names = [fortran.fortran_name(f, p) for p in params]
    result = _result_type(f)
    if result:
        return [f"    {result} function {name}({', '.join(names)})", "      import",
                *(f"      {_declare_mpi_parameter(f, p, base)}" for p in params), "    end function"]
    ierror = [] if f.short in fortran.NO_IERROR else ["ierror"]
    lines = [f"    subroutine {name}({', '.join(names + ierror)})", "      import"]
    if base == "pointer":
        lines[1] = "      use, intrinsic :: iso_c_binding, only: c_ptr"
        lines.append("      import")
    for p in params:
        lines.append("      " + _declare_mpi_parameter(f, p, base))
        if fortran.parameter_role(f, p) in ("choice", "address"):
            lines.append(f"      !GCC$ ATTRIBUTES NO_ARG_CHECK :: {fortran.fortran_name(f, p)}")
    return lines + [f"      integer :: {e}" for e in ierror] + ["    end subroutine"]


def _result_type(f):
    return {"double": "double precision", "MPI_Aint": "integer(kind=MPI_ADDRESS_KIND)"}.get(f.returns)


def _number_type(p):
    return f"integer(kind={fortran.KINDS[p.base]})" if p.base in fortran.KINDS else "integer"


def _declare_mpi_parameter(f, p, base):
    name = fortran.fortran_name(f, p)
    role = fortran.parameter_role(f, p)
    if role == "callback":
        return f"external :: {name}"
    if role in ("choice", "address"):
        return f"type(*), dimension(*) :: {name}"
    if role == "baseptr":
        return f"type(c_ptr) :: {name}" if base == "pointer" else f"integer(kind=MPI_ADDRESS_KIND) :: {name}"
    if role in ("attribute", "state"):
        return f"integer :: {name}" if f.short in fortran.OLD else f"integer(kind=MPI_ADDRESS_KIND) :: {name}"
    if role.startswith("words"):
        return f"character(len=*) :: {name}{role[6:]}"
    if role.startswith("string"):
        return f"character(len=*) :: {name}"
    if role == "status":
        return f"type(MPI_Status) :: {name}" if p.name == "f08_status" else f"integer :: {name}(MPI_STATUS_SIZE)"
    if role == "statuses":
        return f"integer :: {name}(MPI_STATUS_SIZE,*)"
    if role.startswith("handles") or role in ("array", "indices", "weights"):
        dims = "(3,*)" if p.name == "ranges" else "(*)"
        return f"{_number_type(p) if not role.startswith('handles') else 'integer'} :: {name}{dims}"
    if role.startswith("handle"):
        return f"integer :: {name}"
    if role.startswith("logical"):
        return f"logical :: {name}{'(*)' if role == 'logical_array' else ''}"
    return f"{_number_type(p)} :: {name}"


# ---- the module mpi_f08

def write_f08_types(api):
    """Returns the module of types and constants, which mpi_f08 uses together with callbacks.f90."""
    lines = [f"! Types and constants of mpi_f08. {NOTE}", "!", f"! {LICENSE}", "module mpi_f08_types",
             "  use, intrinsic :: iso_c_binding, only: c_int, c_char", "  implicit none", "  public",
             "  private :: c_int, c_char"]
    for name in fortran.HANDLE_TYPES:
        lines += [f"  type, bind(C) :: {name}", "    integer(c_int) :: MPI_VAL", "  end type"]
    lines += ["  type, bind(C) :: MPI_Status", "    integer(c_int) :: MPI_SOURCE, MPI_TAG, MPI_ERROR",
              "    integer(c_int), private :: MPI_internal(5)", "  end type"]
    lines += [f"  integer, parameter :: {name} = {value}" for name, value in (*_kind_constants(), *list_integer_constants(api))]
    lines += ["  integer(kind=MPI_OFFSET_KIND), parameter :: MPI_DISPLACEMENT_CURRENT = -1"]
    lines += [f"  logical, parameter :: {name} = .false."
              for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING")]
    lines += [f"  type({kind}), parameter :: {name} = {kind}({value})" for name, kind, value in list_handle_constants(api)]
    for name, kind, dims, block in SENTINELS:
        word = {"STATUS": "type(MPI_Status)", "INTEGER": "integer(c_int)", "CHARACTER*1": "character(kind=c_char)"}[kind]
        shape = "(1)" if name == "MPI_STATUSES_IGNORE" else "" if kind == "STATUS" else dims
        lines.append(f'  {word}, bind(C, name="{block}_") :: {name}{shape}')
    for operator, word, test in (("==", "eq", "=="), ("/=", "ne", "/=")):
        lines += [f"  interface operator({operator})"]
        lines += [f"    module procedure {word}_{name.lower()}" for name in fortran.HANDLE_TYPES] + ["  end interface"]
        lines += [f"  private :: {word}_{name.lower()}" for name in fortran.HANDLE_TYPES]
    lines.append("contains")
    for word, test in (("eq", "=="), ("ne", "/=")):
        for name in fortran.HANDLE_TYPES:
            lines += [f"  elemental logical function {word}_{name.lower()}(a, b)", f"    type({name}), intent(in) :: a, b",
                      f"    {word}_{name.lower()} = a%MPI_VAL {test} b%MPI_VAL", "  end function"]
    return "\n".join(lines + ["end module mpi_f08_types"]) + "\n"


def write_f08(api):
    lines = [f"! The interfaces of mpi_f08. {NOTE}", "!", f"! {LICENSE}", "module mpi_f08",
             "  use mpi_f08_types", "  use mpi_f08_callbacks", "  implicit none", "  public"]
    for prefix in ("", "P"):
        for generic, specifics in _group_generics(api).items():
            lines.append(f"  interface {prefix}{generic}")
            for f in specifics:
                lines += make_f08_interface(f, prefix)
            lines.append("  end interface")
        lines += [f"  interface {prefix}MPI_F_sync_reg",
                  f'    subroutine {prefix}mpi_f_sync_reg_f08ts(buf) bind(C, name="{prefix.lower()}mpi_f_sync_reg_f08ts_")',
                  "      type(*), dimension(..), asynchronous :: buf", "    end subroutine", "  end interface"]
        lines += _make_sizeof(prefix)
    return "\n".join(lines + ["end module mpi_f08"]) + "\n"


def _group_generics(api):
    table = {}
    for f in fortran.list_functions(api):
        if not fortran.is_in_f08(f):
            continue
        own = not fortran.is_large(f) or f.short in fortran.OWN_NAME
        table.setdefault(f.name if own else f.name[:-2], []).append(f)
    return table


def make_f08_interface(f, prefix):
    params = fortran.list_parameters(f)
    names = [fortran.fortran_name(f, p) for p in params]
    low = prefix.lower() + f.name.lower()
    choice = fortran.is_choice(f)
    lines = []
    result = _result_type(f)
    ierror = [] if f.short in fortran.NO_IERROR else ["ierror"]
    if result:
        lines += [f"    {result} function {low}_f08({', '.join(names)})", "      import"]
    else:
        name = low + ("_f08ts" if choice else "_f08")
        bind = f' bind(C, name="{name}_")' if choice else ""
        lines += [f"    subroutine {name}({', '.join(names + ierror)}){bind}"]
        if any(fortran.parameter_role(f, p) in ("baseptr", "address") for p in params):
            lines.append("      use, intrinsic :: iso_c_binding, only: c_ptr")
        lines.append("      import")
    lines += [f"      {_declare_f08_parameter(f, p)}" for p in params]
    if result:
        return lines + ["    end function"]
    return lines + [f"      integer, optional, intent(out) :: {e}" for e in ierror] + ["    end subroutine"]


def _declare_f08_parameter(f, p):
    name = fortran.fortran_name(f, p)
    role = fortran.parameter_role(f, p)
    given = ", intent(in)" if p.const else ""
    if role == "callback":
        return f"procedure({p.base}) :: {name}"
    if role == "choice":
        later = ", asynchronous" if any(q.base in ("MPI_Request", "MPI_Win") for q in f.params) else ""
        return f"type(*), dimension(..){given}{later} :: {name}"
    if role in ("baseptr", "address"):
        return f"type(c_ptr), intent(out) :: {name}"
    if role == "state":
        return f"integer(kind=MPI_ADDRESS_KIND), intent(in) :: {name}"
    if role == "attribute":
        way = "in" if "set" in f.name else "out"
        return f"integer(kind=MPI_ADDRESS_KIND), intent({way}) :: {name}"
    if role.startswith("words"):
        return f"character(len=*), intent(in) :: {name}{role[6:]}"
    if role.startswith("string"):
        return f"character(len=*), intent({role[7:]}) :: {name}"
    if role in ("status", "statuses"):
        if p.name == "f_status":
            return f"integer{given or ', intent(out)'} :: {name}(MPI_STATUS_SIZE)"
        return f"type(MPI_Status){given} :: {name}{'(*)' if role == 'statuses' else ''}"
    if role.startswith("handles"):
        return f"type({p.base}){given} :: {name}(*)"
    if role.startswith("handle"):
        return f"type({p.base}), intent({role[7:]}) :: {name}"
    if role == "logical_array":
        return f"logical{given} :: {name}(*)"
    if role.startswith("logical"):
        return f"logical, intent({role[8:]}) :: {name}"
    if role in ("array", "indices", "weights"):
        return f"{_number_type(p)}{given} :: {name}{'(3,*)' if p.name == 'ranges' else '(*)'}"
    if role == "value":
        return f"{_number_type(p)}, intent(in) :: {name}"
    both = p.name in fortran.INOUT_POINTERS or f.name.endswith("_free_keyval")
    return f"{_number_type(p)}, intent({'inout' if both else 'out'}) :: {name}"
