#!/usr/bin/env python3
"""Checks that the sources contain every message that docs/troubleshooting.md quotes (lines that begin with '>')."""
# SPDX-License-Identifier: Apache-2.0
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [p for folder in ("src", "launcher", "tools", "softib") for p in (ROOT / folder).rglob("*.c")]
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Joins literals with a constant between them, as in "%" PRIu64 "\n".
JOINED = re.compile(r'"\s*(?:[A-Z][A-Za-z0-9_]*\s*)?"')


def read_literals(path):
    text = JOINED.sub("", path.read_text())
    return [m.replace('\\"', '"').replace("\\n", " ") for m in STRING.findall(text)]


def make_pattern(quote):
    pieces = [re.escape(piece.strip()) for piece in quote.split("...")]
    return re.compile(r".{0,60}?".join(pieces))


def main():
    known = [text for path in SOURCES for text in read_literals(path)]
    quotes = [line[2:].strip() for line in (ROOT / "docs/troubleshooting.md").read_text().splitlines() if line.startswith("> ")]
    missing = [q for q in quotes if not any(make_pattern(q).search(text) for text in known)]
    for quote in missing:
        print(f"docs/troubleshooting.md quotes a message that no source prints: {quote}")
    print(f"{len(quotes) - len(missing)} of {len(quotes)} messages found")
    return 1 if missing or not quotes else 0


if __name__ == "__main__":
    sys.exit(main())
