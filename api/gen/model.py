# Reads the API tables as Python objects: functions, their parameters, constants, and pairs of MPI_X and MPI_X_c. No other module parses a
# table or a prototype.
#
# SPDX-License-Identifier: Apache-2.0

import re
from pathlib import Path

HANDLES = {
    "MPI_Comm": "comm",
    "MPI_Group": "group",
    "MPI_Datatype": "dtype",
    "MPI_Op": "op",
    "MPI_Info": "info",
    "MPI_Errhandler": "errhandler",
    "MPI_Session": "session",
    "MPI_Request": "request",
    "MPI_Win": "win",
    "MPI_File": "file",
}

FUNCTION_COLUMNS = ("name", "prototype", "chapter", "since", "marks", "impl", "when", "errors", "params")
CONSTANT_COLUMNS = ("name", "kind", "ctype", "value")


class TableError(Exception):
    """A row of a table is invalid; the message names the row."""


def read_table(path, columns):
    """Yields the rows of a tab-separated table as dictionaries; '#' lines are comments, '-' is an empty cell."""
    rows = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise TableError(f"{path}:{number}: {len(cells)} columns instead of {len(columns)}")
        rows.append(dict(zip(columns, cells)))
    return rows


class Param:
    """A parameter. `const int ranks[]` has base 'int', const True and dims '[]'; `MPI_Comm *c` has stars '*'."""

    def __init__(self, text):
        self.text = text.strip()
        match = re.fullmatch(r"(const )?(\w+)((?: ?\*+)?) ?(\w+)((?:\[\d*\])*)", self.text)
        if not match:
            raise TableError(f"cannot parse parameter '{text}'")
        self.const = bool(match[1])
        self.base = match[2]
        self.stars = match[3].strip()
        self.name = match[4]
        self.dims = match[5]
        self.kind = None  # set by kinds.classify()
        self.when = None  # where the argument is significant, None: everywhere

    @property
    def is_value(self):
        return not self.stars and not self.dims

    @property
    def is_pointer(self):
        return self.stars == "*" and not self.dims

    @property
    def is_array(self):
        return bool(self.dims)

    @property
    def handle(self):
        """Returns the name of the internal struct if the parameter is a handle passed by value, else None."""
        return HANDLES.get(self.base) if self.is_value else None

    def declare(self, base=None):
        """Returns the declaration in C, with the base type `base` if it is given."""
        const = "const " if self.const else ""
        return f"{const}{base or self.base} {self.stars}{self.name}{self.dims}"


class Function:
    """One row of functions.tsv."""

    def __init__(self, row):
        self.name = row["name"]
        self.chapter = row["chapter"]
        self.since = row["since"]
        self.marks = set() if row["marks"] == "-" else set(row["marks"].split(","))
        self.impl_cell = row["impl"]
        self.when = row["when"]
        self.errors = row["errors"]
        self.params_cell = row["params"]
        match = re.fullmatch(r"(\w+) (MPIX?_\w+)\((.*)\)", row["prototype"])
        if not match or match[2] != self.name:
            raise TableError(f"cannot parse the prototype of {self.name}")
        self.returns = match[1]
        self.arguments = match[3]
        self.variadic = self.arguments.endswith(", ...")
        text = self.arguments.removesuffix(", ...")
        self.params = [] if text == "void" else [Param(p) for p in text.split(", ")]
        self.base = None  # the function whose implementation this function shares; usually MPI_X for MPI_X_c
        self.wide = None  # for MPI_X: the large-count function MPI_X_c

    @property
    def short(self):
        return self.name.removeprefix("MPI_").removeprefix("MPIX_")

    @property
    def is_extension(self):
        """True if the function is not in the standard; it is declared in mpi-ext.h."""
        return self.name.startswith("MPIX_")

    @property
    def provided(self):
        """False for functions that MPI-3.0 removed; they are in the table but not in the library."""
        return not any(mark.startswith("removed-") for mark in self.marks)

    @property
    def is_tool(self):
        """True for MPI_T functions, which return error codes and never call an error handler (MPI-5.0, 15.3.10)."""
        return self.name.startswith("MPI_T_")

    @property
    def is_conversion(self):
        """True for conversions between handles and integers, whose bodies are generated."""
        return self.impl_cell == "conversion"

    def param(self, name):
        for p in self.params:
            if p.name == name:
                return p
        raise TableError(f"{self.name} has no parameter '{name}'")

    def prototype(self, prefix=""):
        return f"{self.returns} {prefix}{self.name}({self.arguments})"


class Constant:
    """One row of constants.tsv."""

    def __init__(self, row):
        self.name = row["name"]
        self.kind = row["kind"]
        self.ctype = row["ctype"]
        self.value = row["value"]


class Api:
    """Both tables, with references between MPI_X and MPI_X_c."""

    def __init__(self, folder):
        folder = Path(folder)
        rows = read_table(folder / "functions.tsv", FUNCTION_COLUMNS)
        self.all_functions = [Function(row) for row in rows]
        self.functions = [f for f in self.all_functions if f.provided]
        self.constants = [Constant(row) for row in read_table(folder / "constants.tsv", CONSTANT_COLUMNS)]
        self.by_name = {f.name: f for f in self.functions}
        self._pair()

    def _pair(self):
        """Sets `base` and `wide` of the functions. The impl column names the function whose implementation is shared; by default MPI_X_c
        shares that of MPI_X."""
        for f in self.functions:
            if f.impl_cell in ("own", "conversion"):
                continue
            if f.impl_cell != "-":
                f.base = self.by_name["MPI_" + f.impl_cell]
            elif f.name.endswith("_c") and f.name[:-2] in self.by_name:
                f.base = self.by_name[f.name[:-2]]
                f.base.wide = f
                f.when, f.errors = f.base.when, f.base.errors

    def chapters(self):
        return sorted({f.chapter for f in self.functions})
