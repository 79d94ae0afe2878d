#!/usr/bin/env python3
# man.py PAGES FUNCTIONS.TSV: every function of the library has a manual page with a name line that apropos reads, a synopsis that
# agrees with the table, and a line for each parameter; groff, where it is installed, formats all pages without a warning.
#
# SPDX-License-Identifier: Apache-2.0

import re
import shutil
import subprocess
import sys
from pathlib import Path


def remove_escapes(text):
    return text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def check_page(pages, name, prototype):
    path = pages / f"{name}.3"
    if not path.exists():
        return [f"{name}: no page"]
    text = remove_escapes(path.read_text())
    if text.startswith(".so "):
        target = pages / text.split()[1].removeprefix("man3/")
        if not target.exists():
            return [f"{name}: refers to {target.name}, which is not there"]
        text = remove_escapes(target.read_text())
    wrong = []
    if not re.search(rf"^\.SH NAME\n[^\n]*\b{name}\b[^\n]* - \w", text, re.M):
        wrong.append(f"{name}: no name line")
    if " ".join(f"{prototype};".split()) not in " ".join(text.split()):
        wrong.append(f"{name}: no synopsis")
    synopsis = text.partition(".SH SYNOPSIS")[2].partition("Fortran (")[0].partition(".SH DESCRIPTION")[0]
    wrong += [f"{name}: wider than 80 columns: {line}" for line in synopsis.splitlines() if len(line) > 72 and ", " in line]
    arguments = prototype[prototype.index("(") + 1:-1]
    for argument in [] if arguments == "void" else arguments.removesuffix(", ...").split(", "):
        parameter = re.search(r"(\w+)(\[[^]]*\])*$", argument)[1]
        if f"\n\\fI{parameter}\\fP (" not in text and not name.endswith("_c"):
            wrong.append(f"{name}: nothing on {parameter}")
    return wrong


def main():
    pages, table = Path(sys.argv[1]), Path(sys.argv[2])
    wrong, count = [], 0
    for line in table.read_text().splitlines():
        cells = line.split("\t")
        if line.startswith("#") or "removed-" in cells[4]:
            continue
        count += 1
        wrong += check_page(pages, cells[0], cells[1])
    if shutil.which("groff"):
        own = [path for path in sorted(pages.glob("*.3")) if not path.read_text().startswith(".so ")]
        run = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z", *map(str, own)], capture_output=True, text=True, check=False)
        wrong += run.stderr.splitlines()[:20]
    for line in wrong:
        print(line)
    print(f"{count} functions, {len(wrong)} errors")
    return bool(wrong) or count == 0


if __name__ == "__main__":
    sys.exit(main())
