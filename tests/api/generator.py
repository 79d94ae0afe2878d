#!/usr/bin/env python3
# The generator's rules on selected rows: signatures of implementations, which arguments are checked at which ranks, and
# refusal of an invalid table with the name of the row. Argument: the folder api/.
#
# SPDX-License-Identifier: Apache-2.0

import sys
import tempfile
import unittest
from pathlib import Path

API = Path(sys.argv.pop(1))
sys.path.insert(0, str(API))
sys.dont_write_bytecode = True

from gen.bodies import list_generated_names  # noqa: E402
from gen.impl import list_implemented, make_prototype  # noqa: E402
from gen.kinds import classify_parameters, significance_condition  # noqa: E402
from gen.lists import check_names, find_implementations  # noqa: E402
from gen.model import Api, Function, FUNCTION_COLUMNS, TableError  # noqa: E402


def make_row(**cells):
    return {**dict.fromkeys(FUNCTION_COLUMNS, "-"), **cells}


class Rules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = Api(API)
        classify_parameters(cls.api)

    def expect_implementation(self, name, wanted):
        self.assertEqual(make_prototype(self.api.by_name[name]), wanted)

    def test_handles_and_counts(self):
        self.expect_implementation("MPI_Send", "int impl_Send(const void *buf, MPI_Count count, struct dtype *datatype, "
                                        "int dest, int tag, struct comm *comm)")

    def test_arrays_that_differ_become_vectors(self):
        self.expect_implementation("MPI_Reduce_scatter",
                            "int impl_Reduce_scatter(const void *sendbuf, void *recvbuf, struct ivec recvcounts, "
                            "struct dtype *datatype, struct op *op, struct comm *comm)")

    def test_outputs_are_wide(self):
        self.expect_implementation("MPI_Type_size", "int impl_Type_size(struct dtype *datatype, MPI_Count *size)")

    def test_handles_by_reference_stay(self):
        self.expect_implementation("MPI_Waitall", "int impl_Waitall(int count, MPI_Request array_of_requests[], "
                                           "MPI_Status *array_of_statuses)")

    def test_each_pair_has_one_implementation(self):
        names = [f.short for f in list_implemented(self.api)]
        self.assertIn("Bcast", names)
        self.assertNotIn("Bcast_c", names)
        self.assertIn("Op_create_c", names)

    def test_every_function_returns_or_raises(self):
        for f in self.api.functions:
            raises_nothing = (f.returns != "int" or f.name == "MPIX_Query_cuda_support" or f.name.endswith("_toint")
                              or "c2f" in f.name and f.is_conversion)
            self.assertEqual(f.errors == "none", raises_nothing, f.name)

    def test_significance(self):
        gather = self.api.by_name["MPI_Gather"]
        self.assertEqual(significance_condition(gather, gather.param("recvtype")), "api_is_root(comm_, root)")
        self.assertEqual(significance_condition(gather, gather.param("sendtype")), "api_is_leaf(comm_, root, sendbuf)")
        scatterv = self.api.by_name["MPI_Scatterv_c"]
        self.assertEqual(significance_condition(scatterv, scatterv.param("recvtype")), "api_is_leaf(comm_, root, recvbuf)")
        self.assertEqual(significance_condition(scatterv, scatterv.param("sendcounts")), "api_is_root(comm_, root)")

    def test_tags(self):
        self.assertEqual(self.api.by_name["MPI_Send"].param("tag").kind, "sendtag")
        self.assertEqual(self.api.by_name["MPI_Recv"].param("tag").kind, "recvtag")
        self.assertEqual(self.api.by_name["MPI_Sendrecv"].param("sendtag").kind, "sendtag")

    def test_bad_rows_are_refused(self):
        with self.assertRaisesRegex(TableError, "MPI_X"):
            Function(make_row(name="MPI_X", prototype="int MPI_Y(void)"))
        with self.assertRaisesRegex(TableError, "no parameter 'b'"):
            Function(make_row(name="MPI_X", prototype="int MPI_X(int a)")).param("b")

    def test_finding_implementations(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.c").write_text("int impl_Send(int a,\n              int b)\n{\n}\nint impl_Recv(int a);\n"
                                           "double impl_Wtime(void)\n{\n    return impl_Nothing();\n}\n"
                                           "int impl_Sent(void)\n{\n}\n")
            found = find_implementations(folder)
        self.assertEqual(found, {"Send", "Wtime", "Sent"})
        problems = check_names(self.api, found)
        self.assertIn("impl_Sent is defined and MPI_Sent is not in functions.tsv", problems)
        self.assertIn("MPI_Recv is in functions.tsv and impl_Recv is not defined", problems)
        self.assertFalse([p for p in problems if "MPI_Send " in p or "MPI_Wtime " in p])
        written = find_implementations(API.parent / "src" / "api")
        self.assertFalse(written & list_generated_names(self.api))
        self.assertEqual(check_names(self.api, written | list_generated_names(self.api)), [])


unittest.main()
