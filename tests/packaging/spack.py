#!/usr/bin/env python3
"""spack: runs the Spack recipe with a substitute for Spack. Every option that the recipe passes must exist in CMake, every variant
must be used, and each choice must result in the right value.

    spack.py SOURCE

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import runpy
import sys
import types


class Package:
    """The part of CMakePackage that the recipe uses."""
    run_tests = False

    def __init__(self, chosen):
        self.chosen, self.used = chosen, set()

    def define(self, name, value):
        return f"-D{name}:BOOL={'ON' if value else 'OFF'}"

    def define_from_variant(self, name, variant):
        self.used.add(variant)
        return self.define(name, self.chosen[variant])


def load_package(path):
    """Returns the recipe's class and its declarations: {directive: [arguments]}."""
    said = {}
    module = types.ModuleType("spack.package")
    for directive in "license maintainers version variant provides depends_on conflicts".split():
        setattr(module, directive, lambda *a, _d=directive, **k: said.setdefault(_d, []).append((a, k)))
    module.CMakePackage, module.join_path = Package, os.path.join
    sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
    return runpy.run_path(path)["Fishplate"], said


def main():
    source = sys.argv[1]
    recipe, said = load_package(os.path.join(source, "packaging/spack/packages/fishplate/package.py"))
    with open(os.path.join(source, "cmake/options.cmake")) as f:
        options = set(re.findall(r"^(?:option|set)\((\w+)", f.read(), re.M))
    with open(os.path.join(source, "CMakeLists.txt")) as f:
        needs = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", f.read())[1]
    variants = [a[0] for a, _ in said["variant"]]
    problems = []
    for off in [None, *variants]:
        package = recipe({name: name != off for name in variants})
        arguments = dict(re.fullmatch(r"-D(\w+):BOOL=(\w+)", word).groups() for word in package.cmake_args())
        problems += [f"CMake has no option {name}" for name in arguments if name not in options]
        problems += [f"the variant {name} does nothing" for name in variants if name not in package.used]
        count = sum(value == "OFF" for name, value in arguments.items() if name not in ("FISHPLATE_EXAMPLES", "BUILD_TESTING"))
        if count != (off is not None):
            problems.append(f"without {off}, the recipe passes {arguments}")
    if (f"cmake@{needs}:",) not in [a for a, _ in said["depends_on"]]:
        problems.append(f"CMakeLists.txt needs cmake {needs}, the recipe another one")
    print("\n".join(problems) or f"{len(variants)} variants, all of them options of CMake.")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
