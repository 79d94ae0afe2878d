#!/usr/bin/env python3
"""The separate Debian package of softib: built from softib/ without the rest of the project, unpacked, and used from there.

SPDX-License-Identifier: Apache-2.0
"""
import glob

from harness import *

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "softib")


def test_package():
    require_programs("cpack", "dpkg-deb", "ibv_devinfo")
    with scratch_folder() as d:
        build, root = os.path.join(d, "build"), os.path.join(d, "root")
        run_program(["cmake", "-S", SOURCE, "-B", build, "-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Release"])
        run_program(["cmake", "--build", build, "--parallel", "2"])
        run_program(["cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-B", d])
        (package,) = glob.glob(os.path.join(d, "softib_*.deb"))
        run_program(["dpkg-deb", "-x", package, root])
        tool = os.path.join(root, "usr", "bin", "softib")
        out = run_program([tool, "run", "ibv_devinfo"], env=make_env("link=ethernet"))
        assert "softib0" in out and "Ethernet" in out, out
        if shutil.which("pkg-config"):
            paths = make_env(PKG_CONFIG_PATH=os.path.join(root, "usr", "lib", "pkgconfig"))
            folder = run_program(["pkg-config", "--variable=libdir", "softib"], env=paths).strip()
            assert os.path.exists(os.path.join(folder, "libibverbs.so.1")), folder
            if os.path.exists("/usr/include/rdma/rdma_cma.h"):
                assert os.path.exists(os.path.join(folder, "librdmacm.so.1")), folder


run_tests(collect_tests(globals()))
