#!/usr/bin/env python3
# The API generator: reads functions.tsv and constants.tsv, searches the sources for implementations, and writes mpi.h, impl.h, bodies.c, the
# wrappers, the export list and the list of functions (README.md).
#
# SPDX-License-Identifier: Apache-2.0

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # building must not write into the sources

from gen.bodies import list_generated_names, write_bodies
from gen.header import write_extensions, write_header
from gen.impl import write_impl
from gen.kinds import classify_parameters
from gen.lists import check_names, find_implementations, write_exports, write_list, write_list_header
from gen.model import Api, TableError
from gen.wrappers import wrapper_file_name, write_wrappers


def parse_arguments():
    parser = argparse.ArgumentParser(description="write mpi.h and the API layer from the tables in api/")
    parser.add_argument("--out", default=".", type=Path, help="folder for impl.h, bodies.c, wrappers_*.c, exports.map, api_list.*")
    parser.add_argument("--include", type=Path, help="folder for mpi.h")
    parser.add_argument("--sources", type=Path, help="folder scanned for definitions of impl_*")
    parser.add_argument("--version", default="0.0.0", help="the library's version, three numbers")
    parser.add_argument("--outputs", action="store_true", help="only print the names of the files for --out")
    return parser.parse_args()


def write_if_changed(path, text):
    """Writes the file only if its text has changed, so that files that include it are not rebuilt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def list_outputs(api):
    """Returns {name: function that makes the text} of the files for --out."""
    files = {
        "impl.h": lambda: write_impl(api),
        "api_list.h": lambda: write_list_header(api),
        "api_list.c": lambda: write_list(api),
        "bodies.c": lambda: write_bodies(api),
        "exports.map": lambda: write_exports(api),
    }
    for chapter in api.chapters():
        files[wrapper_file_name(chapter)] = lambda chapter=chapter: write_wrappers(api, chapter)
    return files


def main():
    args = parse_arguments()
    api = Api(Path(__file__).resolve().parent)
    classify_parameters(api)
    files = list_outputs(api)
    if args.outputs:
        print("\n".join(sorted(files)))
        return 0
    problems = check_names(api, find_implementations(args.sources) | list_generated_names(api)) if args.sources else []
    if problems:
        raise TableError("; ".join(problems))
    if args.include:
        version = tuple(int(n) for n in args.version.split("."))
        write_if_changed(args.include / "mpi.h", write_header(api, version))
        write_if_changed(args.include / "mpi-ext.h", write_extensions(api))
    for name, text in files.items():
        write_if_changed(args.out / name, text())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TableError as error:
        sys.exit(f"generate.py: {error}")
