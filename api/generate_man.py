#!/usr/bin/env python3
# Writes the manual pages of all MPI functions, MPI_Send(3) and so on, into a folder. See gen/man.py.
#
# SPDX-License-Identifier: Apache-2.0

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # building must not write into the sources

from gen.kinds import classify_parameters
from gen.man import make_pages
from gen.model import Api, TableError


def main():
    parser = argparse.ArgumentParser(description="write the manual pages of all MPI functions")
    parser.add_argument("--out", required=True, type=Path, help="folder for the pages")
    parser.add_argument("--version", default="0.0.0", help="the library's version")
    args = parser.parse_args()
    here = Path(__file__).resolve().parent
    api = Api(here)
    classify_parameters(api)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, text in make_pages(api, args.version, here / "man"):
        (args.out / name).write_text(text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TableError as error:
        sys.exit(f"generate_man.py: {error}")
