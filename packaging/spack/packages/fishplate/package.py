# SPDX-License-Identifier: Apache-2.0
"""Spack's recipe. From a checkout:

    spack repo add packaging/spack
    spack develop --path $PWD fishplate@main
    spack install fishplate@main
"""
from spack.package import *


class Fishplate(CMakePackage):
    """MPI library for InfiniBand and RoCE with the MPI 5.0 standard ABI, and softib, a software InfiniBand adapter."""

    license("Apache-2.0")
    maintainers()

    version("main", branch="main")

    variant("fortran", default=True, description="Fortran bindings (gfortran 12 or later)")
    variant("infiniband", default=True, description="InfiniBand and RoCE transport")
    variant("softib", default=True, description="softib, the software InfiniBand adapter")
    variant("tools", default=True, description="The fishplate tool: info, bench, prof")
    variant("lto", default=False, description="Link-time optimisation of the library")

    provides("mpi@:5.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.20:", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("rdma-core", when="+infiniband")
    depends_on("rdma-core", when="+softib")

    conflicts("%gcc@:11", when="+fortran", msg="the Fortran bindings need gfortran 12 or later")

    def cmake_args(self):
        return [
            self.define_from_variant("FISHPLATE_FORTRAN", "fortran"),
            self.define_from_variant("FISHPLATE_IB", "infiniband"),
            self.define_from_variant("FISHPLATE_SOFTIB", "softib"),
            self.define_from_variant("FISHPLATE_TOOLS", "tools"),
            self.define_from_variant("FISHPLATE_LTO", "lto"),
            self.define("FISHPLATE_EXAMPLES", False),
            self.define("BUILD_TESTING", self.run_tests),
        ]

    def setup_run_environment(self, env):
        env.set("MPICC", join_path(self.prefix.bin, "mpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "mpicxx"))
        if self.spec.satisfies("+fortran"):
            env.set("MPIF90", join_path(self.prefix.bin, "mpifort"))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
        if self.spec.satisfies("+fortran"):
            self.spec.mpifc = join_path(self.prefix.bin, "mpifort")
            self.spec.mpif77 = join_path(self.prefix.bin, "mpif77")
