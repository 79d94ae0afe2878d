# Small helpers for C text: the opening comment of a generated file and line breaking of prototypes.
#
# SPDX-License-Identifier: Apache-2.0

WIDTH = 110


def banner(what):
    """The opening comment of a generated file."""
    return f"/*\n * {what}\n * Generated from the tables in api/ by api/generate.py: edit those, not this.\n *\n" \
           " * SPDX-License-Identifier: Apache-2.0\n */\n"


def wrap_prototype(text, indent=4):
    """Break a prototype after commas so that no line is longer than WIDTH."""
    lines, line = [], ""
    for piece in text.split(", "):
        candidate = f"{line}, {piece}" if line else piece
        if len(candidate) >= WIDTH and line:
            lines.append(line + ",")
            line = " " * indent + piece
        else:
            line = candidate
    return "\n".join(lines + [line])


def wrap_call(text, indent=8):
    """Break a long call after commas; what follows is indented under it."""
    return wrap_prototype(text, indent)
