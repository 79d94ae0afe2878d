# Functions for C text: the first comment of a generated file, and line breaks in prototypes.
#
# SPDX-License-Identifier: Apache-2.0

WIDTH = 110


def make_banner(what):
    """Returns the first comment of a generated file."""
    return f"/*\n * {what}\n * Generated from the tables in api/ by api/generate.py: edit those, not this.\n *\n" \
           " * SPDX-License-Identifier: Apache-2.0\n */\n"


def wrap_prototype(text, indent=4):
    """Breaks a prototype after commas so that no line is longer than WIDTH."""
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
    """Breaks a long call after commas; continuation lines are indented."""
    return wrap_prototype(text, indent)
