#!/usr/bin/env python3
# Every procedure that the modules declare must be in the library, since interfaces alone are not linked; and every mpi_x_
# must also exist as pmpi_x_ and in the other spellings. Arguments: the library, the folder of the modules.
#
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys
from pathlib import Path

library, folder = sys.argv[1:3]
listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
there = {line.split()[-1] for line in listing.splitlines()}
wanted = set()
for name in ("mpi.f90", "mpi_f08.f90"):
    for match in re.finditer(r"^ +(?:subroutine|[\w() =]+ function) (\w+)\(", (Path(folder) / name).read_text(), re.M):
        wanted.add(match[1].lower() + "_")
missing = sorted(wanted - there)
for name in sorted(wanted):
    if re.fullmatch(r"p?mpi_\w+_", name) and "_f08" not in name and not name.endswith("_cptr_"):
        base = name[:-1]
        missing += [s for s in (base, base + "__", base.upper()) if s not in there]
    if not name.startswith("p") and "p" + name not in there:
        missing.append("p" + name)
print(f"{len(wanted)} procedures declared, {len(missing)} symbols missing")
for name in missing:
    print(name)
sys.exit(bool(missing))
