#!/usr/bin/env python3
"""Runs the commands that a page of the documentation prints, as printed, against a build.

    examples.py --build DIR PAGE

Commands are the lines of fenced blocks marked sh, and the lines with "$ " of blocks marked console. The commands of a page run in one
folder, which looks like a clone in which `make` has run: `build` is DIR, and DIR/bin is first in PATH. examples.txt lists the commands
that cannot be run, with the reasons. Indented code is an error, since this test would not find its commands.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"sh", "console", "text", "c", "fortran"}
# Programs and files of a user that the pages mention: name in the page and example program, name and contents.
PROGRAMS = {"program": "ring"}
FILES = {"hostfile": "localhost:8\n", "mine.txt": "link_rate 25\n"}


def read_blocks(page):
    """Yields (line number, kind, lines) of each fenced block; complains about code that is not fenced."""
    kind, body, start, blank, problems = None, [], 0, True, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            if kind is None:
                kind, body, start = line[3:].strip(), [], number
            else:
                if kind not in KINDS:
                    problems.append(f'{page.name}:{start}: a block of code is marked sh, console, text, c or fortran, not "{kind}"')
                yield start, kind, body
                kind = None
        elif kind is not None:
            body.append(line)
        elif blank and line.startswith("    "):
            problems.append(f"{page.name}:{number}: write code between ``` fences, not indented")
        blank = not line.strip()
    if problems:
        sys.exit("\n".join(problems))


def read_commands(page):
    """Yields for each block of a page its commands: a list of (line number, text)."""
    for start, kind, body in read_blocks(page):
        if kind == "sh":
            found = [(start + i, text) for i, text in enumerate(body, 1) if text.strip() and not text.startswith("#")]
        elif kind == "console":
            found = [(start + i, text[2:]) for i, text in enumerate(body, 1) if text.startswith("$ ")]
        else:
            continue
        if found:
            yield found


def read_exceptions(name):
    """Returns {beginning of a command: reason} for the commands of this page that are not run."""
    listed = {}
    for line in (Path(__file__).parent / "examples.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            page, beginning, reason = (part.strip() for part in line.split(" | "))
            if page == name:
                listed[beginning] = reason
    return listed


def prepare_folder(folder, build, texts):
    for entry in ROOT.iterdir():
        if not entry.name.startswith("build") and entry.name != ".git":
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(build)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    whole = "\n".join(texts)
    for name in sorted(set(re.findall(r"(?:^|\s)\./(\w+)", whole))):
        source = ROOT / "examples" / f"{PROGRAMS.get(name, name)}.c"
        if source.exists() and not re.search(rf"-o {name}\b", whole):
            subprocess.run([build / "bin/mpicc", source, "-o", folder / name, "-lm"], check=True)


def run_block(block, folder, env):
    script = "\n".join(text for _, text in block)
    done = subprocess.run(["sh", "-e", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        print(f"Line {block[0][0]}: exit status {done.returncode} from\n{script}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("page", type=Path)
    args = parser.parse_args()
    name = str(args.page.resolve().relative_to(ROOT))
    listed, used, ran, good = read_exceptions(name), set(), 0, True
    todo = []
    for block in read_commands(args.page):
        runnable = []
        for number, text in block:
            match = next((beginning for beginning in listed if text.startswith(beginning)), None)
            if match:
                used.add(match)
            else:
                runnable.append((number, text))
        todo += [runnable] if runnable else []
    for beginning in listed.keys() - used:
        print(f"examples.txt names a command that {name} does not print: {beginning}")
        good = False
    build = args.build.resolve()
    folder = Path(tempfile.mkdtemp(prefix="fishplate-examples-"))
    try:
        if todo:
            prepare_folder(folder, build, [text for block in todo for _, text in block])
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FISHPLATE_", "SOFTIB_", "PMI"))}
        env |= {"PATH": f"{build}/bin:{env['PATH']}", "HOME": str(folder)}
        for block in todo:
            good = run_block(block, folder, env) and good
            ran += len(block)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{name}: {ran} commands run, {len(used)} kinds of commands listed as not runnable here")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
