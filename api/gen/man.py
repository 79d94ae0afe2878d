# Writes manual pages (section 3) of the MPI functions from the API tables, from the sentences in man/functions.txt and the
# descriptions of parameters in man/parameters.txt. Synopses, directions of parameters and error classes come from the tables only,
# so that a page cannot contradict mpi.h or the Fortran modules.
#
# SPDX-License-Identifier: Apache-2.0

import fnmatch
import itertools
import re

from . import fortran, fortran_text
from .model import TableError

CHAPTERS = {
    "abi": "the standard ABI", "attr": "attributes", "coll": "collective communication", "datatype": "datatypes",
    "env": "environment and errors", "ext": "external interfaces", "ft": "fault tolerance (ULFM)",
    "group/comm": "groups and communicators", "info": "info objects", "io": "files", "lang-interop": "C and Fortran together",
    "p2p": "point-to-point communication", "partitioned": "partitioned communication",
    "persistent-coll": "persistent collective communication", "rma": "one-sided communication", "session": "sessions",
    "spawn": "processes and ports", "tools": "the tool interface", "topo": "process topologies",
}
# Kind of a parameter (gen/kinds.py): error class of its check, and the condition that the check requires.
REQUIRED = {
    "committed": ("MPI_ERR_TYPE", "is a valid, committed datatype"),
    "count": ("MPI_ERR_COUNT", "is not negative"),
    "counts": ("MPI_ERR_COUNT", "has no negative element"),
    "mycounts": ("MPI_ERR_COUNT", "has no negative element"),
    "nonneg": ("MPI_ERR_ARG", "is not negative"),
    "types": ("MPI_ERR_TYPE", "has only valid, committed datatypes"),
    "buf": ("MPI_ERR_BUFFER", "is not NULL when there are elements of a predefined datatype"),
    "dest": ("MPI_ERR_RANK", "is a rank of comm or MPI_PROC_NULL"),
    "source": ("MPI_ERR_RANK", "is a rank of comm, MPI_ANY_SOURCE or MPI_PROC_NULL"),
    "root": ("MPI_ERR_ROOT", "is a rank of comm; in an intercommunicator of the remote group, MPI_ROOT or MPI_PROC_NULL"),
    "sendtag": ("MPI_ERR_TAG", "is between 0 and the value of MPI_TAG_UB"),
    "recvtag": ("MPI_ERR_TAG", "is between 0 and the value of MPI_TAG_UB, or MPI_ANY_TAG"),
    "ptr": ("MPI_ERR_ARG", "is not NULL"),
    "inout": ("MPI_ERR_ARG", "is not NULL"),
    "key": ("MPI_ERR_INFO_KEY", "is not NULL"),
    "value": ("MPI_ERR_INFO_VALUE", "is not NULL"),
    "array": ("MPI_ERR_ARG", "is not NULL unless it has no elements"),
}
HANDLE_CLASSES = {"comm": "MPI_ERR_COMM", "group": "MPI_ERR_GROUP", "dtype": "MPI_ERR_TYPE", "op": "MPI_ERR_OP", "info": "MPI_ERR_INFO",
                  "errhandler": "MPI_ERR_ERRHANDLER", "session": "MPI_ERR_SESSION", "request": "MPI_ERR_REQUEST",
                  "win": "MPI_ERR_WIN", "file": "MPI_ERR_FILE"}
# Texts for arguments that are not significant at every process (gen/kinds.py, WHERE).
PLACES = {
    "root": "significant at the root only", "leaf": "not significant with MPI_IN_PLACE",
    "given": "not significant with MPI_IN_PLACE", "member": "not significant with root MPI_PROC_NULL",
    "operand": "not significant with MPI_NO_OP",
}


def _read_lines(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            name, found, text = line.partition(": ")
            if not found:
                raise TableError(f"{path}:{number}: no ': ' in the line")
            yield name, text


def _expand_lists(name, text):
    """Yields (name, sentence) for each position in the lists in braces; all lists must have the same length and advance together."""
    lists = re.findall(r"\{([^}]*)\}", name + text)
    lengths = {len(part.split(",")) for part in lists}
    if len(lengths) > 1:
        raise TableError(f"{name}: lists of different lengths in braces")
    for i in range(lengths.pop() if lengths else 1):
        yield tuple(re.sub(r"\{([^}]*)\}", lambda match: match[1].split(",")[i], part) for part in (name, text))


class Texts:
    """Sentences about functions and descriptions of parameters."""

    def __init__(self, api, folder):
        self.api = api
        pairs = list(itertools.chain.from_iterable(_expand_lists(*line) for line in _read_lines(folder / "functions.txt")))
        self.sentences = dict(pairs)
        self.parameters = list(_read_lines(folder / "parameters.txt"))
        if len(self.sentences) != len(pairs):
            raise TableError("functions.txt: a function has two sentences")
        for name in self.sentences:
            if name not in api.by_name:
                raise TableError(f"functions.txt: {name} is no function of the library")

    def _of_blocking(self, f):
        """Returns the sentence for a nonblocking, persistent or request-based form, made from that of the blocking form, or None."""
        prefix, short = f.name[:len(f.name) - len(f.short)], f.short
        forms = ((short[1:2].upper() + short[2:], short[0] == "I", "Starts the nonblocking form of {}: "),
                 (short.removesuffix("_init"), short.endswith("_init"), "Creates a persistent request for {}: "),
                 (short[1:2].upper() + short[2:], short[0] == "R", "Starts the form of {} that has a request: "))
        for blocking, fits, words in forms:
            known = self.sentences.get(prefix + blocking)
            if fits and known:
                return words.format(prefix + blocking) + known[0].lower() + known[1:]
        return None

    def sentence(self, f):
        text = self.sentences.get(f.name) or self._of_blocking(f)
        if not text:
            raise TableError(f"functions.txt has no sentence for {f.name}")
        return text

    def parameter(self, f, p):
        for name, text in self.parameters:
            key, _, pattern = name.partition("@")
            if key == p.name and (not pattern or fnmatch.fnmatch(f.name, pattern)):
                return text
        raise TableError(f"parameters.txt has nothing on '{p.name}' of {f.name}")


def _escape_roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def _make_c_synopsis(f):
    return [".PP", ".nf", *(_escape_roff(line) for line in _wrap_text(f.prototype() + ";")), ".fi"]


def _wrap_text(text, width=70):  # man indents by 7 columns: 80 in all
    lines, line = [], ""
    for piece in re.split(r"(?<=,) ", text):
        if line and len(line) + len(piece) >= width:
            lines.append(line)
            line = "    " + piece
        else:
            line = f"{line} {piece}" if line else piece
    return lines + [line]


def _make_fortran_synopsis(f):
    """Returns the Fortran interface: of mpi_f08, or of the module mpi if mpi_f08 does not have the procedure; empty without Fortran."""
    if not fortran.has_fortran(f):
        return []
    body = fortran_text.make_f08_interface(f, "") if fortran.is_in_f08(f) else fortran_text.make_mpi_interface(f, f.name, "address")
    body = [line for line in body if not re.search(r"^ *(import|use,|!GCC\$|end )", line)]
    head = re.sub(r"^ *(.*?)(subroutine|function) \w+(\(.*?\)).*", lambda match: f"{match[1]}{f.name}{match[3]}", body[0])
    module = "mpi_f08" if fortran.is_in_f08(f) else "mpi"
    return [".PP", f"Fortran ({module})", ".PP", ".nf", *(_escape_roff(line) for line in _wrap_text(head)),
            *("    " + _escape_roff(line.strip()) for line in body[1:]), ".fi"]


def _parameter_direction(p):
    if p.is_value or p.const or p.base.endswith(("_function", "_function_c")):
        return "in"
    if p.kind == "inout" or p.base == "MPI_Request" and p.is_array or p.name in fortran.INOUT_POINTERS:
        return "in, out"
    if p.base == "void":
        return "out" if p.name in ("recvbuf", "outbuf", "result_addr", "baseptr", "buffer_addr") else "buffer"
    return "in" if p.base == "char" and p.stars == "**" else "out"


def _make_requirement(text):
    for statement, order in (("is not ", "must not be "), ("is ", "must be "), ("has no ", "must not have a "), ("has ", "must have ")):
        if text.startswith(statement):
            return order + text[len(statement):]
    return text


def _make_errors(f):
    """Returns the error classes of the argument checks with the required conditions."""
    table = {}
    for p in f.params:
        name, text = REQUIRED.get(p.kind, (None, None))
        if p.kind in ("handle", "null") and p.handle:
            name = HANDLE_CLASSES[p.handle]
            text = "is a valid handle" + (" or the null handle" if p.kind == "null" else "")
        if name:
            table.setdefault(name, {}).setdefault(text, []).append(f"\\fI{p.name}\\fP")
    lines = []
    for name, texts in table.items():
        causes = (f"{' or '.join(names)} {_make_requirement(text)}" for text, names in texts.items())
        lines += [".TP", f".B {name}", "; ".join(causes) + "."]
    return lines


EXTENSIONS = {"ft": "user-level failure mitigation", "env": "as in other MPI libraries"}


def _make_notes(f, wide):
    notes = [f"Since MPI {f.since}." if not f.is_extension else f"An extension ({EXTENSIONS[f.chapter]}), declared in mpi-ext.h."]
    deprecated = next((mark[len("deprecated-"):] for mark in f.marks if mark.startswith("deprecated-")), None)
    if deprecated:
        notes.append(f"Deprecated since MPI {deprecated}.")
    if f.when in ("any", "free"):
        notes.append("May be called at any time, also before MPI_Init and after MPI_Finalize.")
    if wide:
        notes.append(f"{wide.name} is the same with larger counts.")
    if f.is_tool:
        notes.append("Errors are returned and never call an error handler.")
    return notes


def make_page(api, texts, f, version):
    """Returns the roff text of a function's page."""
    header = "mpi-ext.h" if f.is_extension else "mpi.h"
    wide = api.by_name.get(f"{f.name}_c")
    names = f.name + (f", {wide.name}" if wide else "")
    sentence = texts.sentence(f)
    lines = [f'.TH {f.name} 3 "" "Fishplate {version}" "MPI: {CHAPTERS[f.chapter]}"', ".SH NAME",
             _escape_roff(f"{names} - ").replace("\\- ", "\\- ") + _escape_roff(re.split(r"[:;.] |\.$", sentence)[0]), ".SH SYNOPSIS",
             f"#include <{header}>", *_make_c_synopsis(f)]
    if wide:
        lines += _make_c_synopsis(wide)
    lines += [*_make_fortran_synopsis(f), ".SH DESCRIPTION", _escape_roff(sentence)]
    if f.params:
        lines.append(".SH PARAMETERS")
        for p in f.params:
            place = f"; {PLACES[p.when]}" if p.when else ""
            lines += [".TP", f"\\fI{p.name}\\fP ({_parameter_direction(p)})", _escape_roff(texts.parameter(f, p) + place)]
    if f.returns == "int" and f.errors != "none":
        lines += [".SH ERRORS", "Returns MPI_SUCCESS or an error code; MPI_Error_string returns the cause.",
                  *([] if f.is_tool else _make_errors(f))]
    lines += [".SH NOTES", " ".join(_escape_roff(note) for note in _make_notes(f, wide)), ".SH SEE ALSO", _make_see_also(api, f)]
    return "\n".join(lines) + "\n"


def _name_words(f):
    """Returns the words of a name; the I or R of a nonblocking or request-based form is a separate word."""
    return set(re.sub(r"^([IR])(?=[a-z])", r"\1_", f.short).lower().split("_"))


def _make_see_also(api, f):
    """Returns at most eight related functions, preferably of the same chapter; functions with most words in common come first."""
    others = [g for g in api.functions if g is not f and g.base is None and not g.name.endswith("_c")]
    shared = {g.name: len(_name_words(f) & _name_words(g)) - len(_name_words(f) ^ _name_words(g)) / 10 + (g.chapter == f.chapter) for g in others}
    near = sorted((name for name, common in shared.items() if common > 0.7), key=lambda name: (-shared[name], name))
    return ", ".join(f"{name}(3)" for name in near[:8]) or "mpiexec(1), mpicc(1)"


def make_pages(api, version, folder):
    """Yields (file name, text) of every page. The page of a large-count function includes the page of its small form."""
    texts = Texts(api, folder)
    fortran.record_functions(api)
    for f in api.functions:
        shared = api.by_name.get(f.name[:-2]) if f.name.endswith("_c") else None
        if shared:
            yield f"{f.name}.3", f".so man3/{shared.name}.3\n"
        else:
            yield f"{f.name}.3", make_page(api, texts, f, version)
