#!/usr/bin/env python3
# papers_titles.py SOURCES: every table and figure that an entry of `fishplate-lab papers` names is printed by the command of its
# source: a string of that command's code begins with the name. Long runs only show a wrong name as "not measured".
#
# SPDX-License-Identifier: Apache-2.0
import glob
import re
import sys

lab = sys.argv[1] + "/lab/"


def joined(path):
    """Text of a C file with adjacent string literals joined."""
    return re.sub(r'"\s*\n\s*"', "", open(path).read())


def folder(command):
    """Files that print the output of a command."""
    topic = re.search(r"fishplate-lab (sim \w+|\w+)", command).group(1)
    if topic == "ib":
        return lab + "ib/" + re.search(r"--json (\w+)", command).group(1) + ".c"
    return lab + ("simulate/*.c" if topic.startswith("sim ") else topic + "/*.c")


sources = joined(lab + "papers/sources.c")
commands = {name: "fishplate-lab ib --json " + name for name in re.findall(r"IB_TOPIC\((?:\"|)(\w+)\"?,", sources)}
for block in re.split(r"\{\.name = ", sources)[1:]:
    command = re.search(r'"(fishplate-lab [^"]*)"', block)
    if command:
        commands[re.match(r'"(\w+)"', block).group(1)] = command.group(1)

wrong = checked = 0
for path in sorted(glob.glob(lab + "papers/entries_*.c")):
    for entry in re.split(r'\n    \{"', joined(path))[1:]:
        found = re.search(r'"(\w+)",\s*TAKE_(?:TABLE|FIGURE),\s*"([^"]*)"', entry)
        if not found:
            continue
        checked += 1
        texts = "".join(joined(f) for f in glob.glob(folder(commands[found.group(1)])))
        if '"' + found.group(2) not in texts:
            wrong += 1
            print(f"{entry.split(chr(34))[0]}: no string of `{commands[found.group(1)]}` begins with \"{found.group(2)}\"")
print(f"{checked} tables and figures")
sys.exit(1 if wrong or checked < 50 else 0)
