#!/usr/bin/env python3
# The generator of the profiler's interception: reads the same tables as generate.py and writes prof_calls.h and
# prof_calls.c for tools/prof.
#
# SPDX-License-Identifier: Apache-2.0

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # building must not write into the sources

from gen import prof
from gen.model import Api, TableError
from generate import write_if_changed


def main():
    parser = argparse.ArgumentParser(description="write the profiler's interception from the tables in api/")
    parser.add_argument("--out", type=Path, required=True, help="folder for prof_calls.h and prof_calls.c")
    args = parser.parse_args()
    api = Api(Path(__file__).resolve().parent)
    write_if_changed(args.out / "prof_calls.h", prof.write_header(api))
    write_if_changed(args.out / "prof_calls.c", prof.write_calls(api))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TableError as error:
        sys.exit(f"generate_prof.py: {error}")
