# Defines the Fortran type of every function and parameter: LOGICAL or INTEGER, handle, string, choice buffer, callback. The writers of C
# (fortran_c.py) and of Fortran text (fortran_text.py) use only these definitions, so that they agree.
#
# SPDX-License-Identifier: Apache-2.0

from .model import HANDLES

HANDLE_TYPES = (*HANDLES, "MPI_Message")
KINDS = {"MPI_Aint": "MPI_ADDRESS_KIND", "MPI_Count": "MPI_COUNT_KIND", "MPI_Offset": "MPI_OFFSET_KIND"}

# Functions that the standard defines only for C.
SKIP = {
    "Abi_get_fortran_booleans", "Abi_set_fortran_booleans", "Abi_get_fortran_info", "Abi_set_fortran_info",
    "Status_c2f", "Status_f2c", "Status_c2f08", "Status_f082c",
}

# Functions whose C code in fortran/*.c is written by hand: callbacks, attributes, and functions that differ from C in more than types.
BY_HAND = {
    "Init", "Init_thread", "Info_create_env", "Pcontrol", "Wtime", "Wtick", "Aint_add", "Aint_diff",
    "Register_datarep", "Register_datarep_c",
    "Op_create", "Op_create_c", "Grequest_start", "Info_get", "Info_get_string", "Session_get_nth_pset",
    "Comm_spawn", "Comm_spawn_multiple",
    "Comm_create_errhandler", "Win_create_errhandler", "File_create_errhandler", "Session_create_errhandler",
    "Comm_create_keyval", "Type_create_keyval", "Win_create_keyval", "Keyval_create",
    "Comm_set_attr", "Type_set_attr", "Win_set_attr", "Attr_put",
    "Comm_get_attr", "Type_get_attr", "Win_get_attr", "Attr_get",
    "Buffer_detach", "Comm_detach_buffer", "Session_detach_buffer",
    "Buffer_detach_c", "Comm_detach_buffer_c", "Session_detach_buffer_c",
}
# Subroutines without IERROR.
NO_IERROR = {"Pcontrol"}
# Deprecated functions that have INTEGER instead of INTEGER(KIND=MPI_ADDRESS_KIND): not in mpi_f08.
OLD = {"Attr_put", "Attr_get", "Attr_delete", "Keyval_create", "Keyval_free"}
# Large-count forms with separate names: a compiler cannot distinguish them from the small forms by their callbacks.
OWN_NAME = {"Op_create_c", "Register_datarep_c"}

LOGICALS = {"flag", "reorder", "commute", "high", "periods", "remain_dims", "weighted"}
# Arrays of CHARACTER, by their dimensions.
WORDS = {"argv": "(*)", "array_of_commands": "(*)", "array_of_argv": "(count,*)"}
WEIGHTS = {"weights", "sourceweights", "destweights"}
INOUT_POINTERS = {"position", "buflen", "pset_len"}
INOUT_HANDLES = {"Wait", "Test", "Start", "Cancel", "Mrecv", "Imrecv", "Mrecv_c", "Imrecv_c", "Type_commit"}
ENDS = ("_free", "_disconnect", "_close", "_finalize")
STRING_SIZES = {"string": "MPI_MAX_ERROR_STRING", "version": "MPI_MAX_LIBRARY_VERSION_STRING",
                "name": "MPI_MAX_PROCESSOR_NAME", "key": "MPI_MAX_INFO_KEY", "port_name": "MPI_MAX_PORT_NAME",
                "datarep": "MPI_MAX_DATAREP_STRING"}


def has_fortran(f):
    return not (f.is_tool or f.is_conversion or f.short in SKIP or f.returns not in ("int", "double", "MPI_Aint"))


def list_functions(api):
    """Returns all functions that Fortran has, including large-count forms."""
    return [f for f in api.functions if has_fortran(f)]


def is_large(f):
    return f.name.endswith("_c")


def is_in_f08(f):
    """Returns True if mpi_f08 has the function. The standard leaves out large-count forms that Fortran cannot distinguish from the small
    forms."""
    if f.short in OLD:
        return False
    if not is_large(f) or f.short in OWN_NAME:
        return True
    small = f.base or _find_small_form(f)
    if small is None:
        return False
    mine, theirs = [interface_shape(f, p) for p in list_parameters(f)], [interface_shape(small, p) for p in list_parameters(small)]
    return mine != theirs


_TABLE = {}


def record_functions(api):
    """Records all functions by name, since the model does not join an `_c` function with its small form if both have implementations."""
    _TABLE.update(api.by_name)


def _find_small_form(f):
    return _TABLE.get(f.name[:-2])


def list_parameters(f):
    """Returns the parameters that Fortran has; MPI_Init has argc and argv only in C."""
    return [p for p in f.params if p.name not in ("argc", "argv") or f.short == "Comm_spawn"]


def is_choice(f):
    return any(parameter_role(f, p) == "choice" for p in list_parameters(f))


def interface_shape(f, p):
    """Returns the properties of a parameter by which Fortran distinguishes specific procedures of one generic name."""
    kind = KINDS.get(p.base, "")
    return (parameter_role(f, p).split("_")[0], "8" if kind else "")


def fortran_name(f, p):
    if p.name == "indx":
        return "index"
    return "err" if p.name == "error" and f.short.startswith("Status_") else p.name


def string_size(p):
    return STRING_SIZES.get(p.name, "MPI_MAX_OBJECT_NAME")


def parameter_role(f, p):
    """Returns the name of the method by which a parameter is passed between Fortran and C (class Body has a method for each)."""
    if p.base.endswith("_function") or p.base.endswith("_function_c"):
        return "callback"
    if p.base == "void":
        return {"baseptr": "baseptr", "attribute_val": "attribute", "extra_state": "state",
                "buffer_addr": "address"}.get(p.name, "choice")
    if p.name in WORDS:
        return "words_" + WORDS[p.name]
    if p.base == "char":
        return "string_in" if p.const else "string_out"
    if p.base in ("MPI_Status", "MPI_F08_status") or p.name == "f_status":
        return "statuses" if p.name == "array_of_statuses" else "status"
    if p.base in HANDLE_TYPES:
        return _find_handle_role(f, p)
    if p.base == "int" and p.name in LOGICALS:
        return "logical_in" if p.is_value else "logical_array" if p.is_array else "logical_out"
    if p.is_value:
        return "value"
    if p.is_pointer:
        return "index_out" if p.name == "indx" else "pointer"
    if p.name == "array_of_indices":
        return "indices"
    if p.name in WEIGHTS:
        return "weights"
    return "array"


def _find_handle_role(f, p):
    if p.is_value:
        return "handle_in"
    if p.is_array:
        return "handles_in" if p.const else "handles_out" if p.name == "array_of_datatypes" else "handles_inout"
    return "handle_inout" if f.short in INOUT_HANDLES or f.name.endswith(ENDS) else "handle_out"


def handles_length(p):
    """Returns the C expression for the length of an array of handles; None if the array has one handle for each peer."""
    return {"array_of_types": "*count", "array_of_datatypes": "*max_datatypes"}.get(p.name)
