"""Unmodified programs of other projects on softib: rdma-core's examples, perftest, UCX, Open MPI and MPICH.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import secrets
import socket
import textwrap

from harness import *


def test_devinfo():
    require_programs("ibv_devinfo")
    out = run_program(["ibv_devinfo", "-v"], env=make_env("nodes=2 hcas=2 ports=2 lmc=2", 1))
    for want in ("softib0", "softib1", "PORT_ACTIVE", "port_lmc:\t\t0x02", "link_layer:\t\tInfiniBand", "max_qp_wr:"):
        assert want in out, f"expected {want!r} in this output:\n{out}"
    assert out.count("PORT_ACTIVE (4)") == 4, out


def run_pingpong(kind, *options):
    require_programs(f"ibv_{kind}_pingpong")
    out = run_server_and_client([f"ibv_{kind}_pingpong", *options])
    assert "1000 iters" in out, out


def test_rc_pingpong():
    run_pingpong("rc", "-c")
    run_pingpong("rc", "-c", "-e")
    run_pingpong("rc", "-N")
    run_pingpong("rc", "-g", "0")
    run_pingpong("rc", "-t")


def test_uc_pingpong():
    run_pingpong("uc", "-c")
    run_pingpong("uc", "-c", "-e")


def test_ud_pingpong():
    run_pingpong("ud", "-c")
    run_pingpong("ud", "-c", "-e")


def test_srq_pingpong():
    run_pingpong("srq", "-c")
    run_pingpong("srq", "-c", "-e")


def test_xsrq_pingpong():
    run_server_and_client(["ibv_xsrq_pingpong", "-c", 1])


def test_asyncwatch():
    """ibv_asyncwatch prints the event of a port that goes down."""
    require_programs("ibv_asyncwatch")
    fabric = make_env(f"name=watch-{secrets.token_hex(4)}")  # a separate fabric: ports of other tests stay up
    watch = start_program(["stdbuf", "-oL", "ibv_asyncwatch"], env=fabric)
    try:
        for line in watch.stdout:
            if "async event FD" in line:
                run_program([SOFTIB, "ctl", "port", "down", "hca0/1"], env=fabric)
            elif "IBV_EVENT_PORT_ERR" in line:
                break
        else:
            raise AssertionError("ibv_asyncwatch ended without the event")
    finally:
        watch.kill()
        watch.communicate()


def run_perftest(*cmd):
    require_programs(cmd[0])
    out = run_server_and_client([*cmd, "-F"])
    assert "#bytes" in out, out


def test_perftest_latency():
    for op in ("send", "write", "read"):
        run_perftest(f"ib_{op}_lat", "-n", 500, "-s", 64)
    run_perftest("ib_atomic_lat", "-n", 500)
    run_perftest("ib_send_lat", "-n", 500, "-c", "UC")
    run_perftest("ib_send_lat", "-n", 500, "-c", "UD")
    run_perftest("ib_write_lat", "-n", 500, "-c", "UC")
    run_perftest("ib_write_lat", "-n", 500, "-I", 0)
    run_perftest("ib_write_lat", "-n", 500, "-s", 200, "-I", 256)
    run_perftest("ib_send_lat", "-n", 300, "-e")


def test_perftest_bandwidth():
    for op in ("send", "write", "read"):
        run_perftest(f"ib_{op}_bw", "-n", 200)
    run_perftest("ib_atomic_bw", "-n", 500)
    run_perftest("ib_send_bw", "-n", 500, "-c", "UD")
    run_perftest("ib_write_bw", "-n", 200, "-c", "UC")
    # Without -a, which runs all 23 sizes: before each size both ends measure the processor's clock in a loop of gettimeofday, and
    # repeat the measurement if the scheduler disturbed it. On a loaded machine these measurements take minutes.
    for size in (2, 64, 4096, 65536, 1 << 20, 8 << 20):
        run_perftest("ib_send_bw", "-s", size, "-n", 20)
    run_perftest("ib_write_bw", "-n", 200, "-q", 4)
    run_perftest("ib_send_bw", "-n", 200, "-q", 4, "--use-srq")
    run_perftest("ib_write_bw", "-n", 200, "-b")
    run_perftest("ib_send_bw", "-n", 200, "-e")


def test_roce():
    require_programs("ibv_rc_pingpong", "ib_send_lat")
    roce = make_env("link=ethernet")
    for gid in ("0", "1", "2", "3"):
        run_server_and_client(["ibv_rc_pingpong", "-g", gid, "-c"], server_env=roce)
        run_server_and_client(["ibv_ud_pingpong", "-g", gid, "-c"], server_env=roce)
    for cmd in (["ib_send_lat", "-c", "UD"], ["ib_write_lat"], ["ib_read_bw"], ["ib_atomic_bw"]):
        out = run_server_and_client([*cmd, "-n", 200, "-x", 3, "-F"], server_env=roce)
        assert "#bytes" in out and "Ethernet" in out, out


def cm_is_listening(pid):
    """True if the process listens with a connection manager: one of its descriptors is a Unix socket of softib's manager."""
    try:
        own = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return False
    with open("/proc/net/unix") as f:
        lines = [line.split() for line in f if "@softib-cm/" in line]
    return any(line[3] == "00010000" and f"socket:[{line[6]}]" in own for line in lines)


def run_cm_pair(server, client, fabric="", ends=True):
    """Runs a pair of programs of the connection manager, whose port numbers are fixed: each pair has its own fabric."""
    require_programs(server[0], client[0])
    fabric = f"name=cm-{secrets.token_hex(4)} nodes=2 {fabric}"
    s = start_program(server, env=make_env(fabric, 0))
    try:
        wait_until(lambda: cm_is_listening(s.pid), f"the service of {server[0]}", s)
        out = run_program(client, env=make_env(fabric, 1))
        if ends:
            finish_program(s, "server " + " ".join(map(str, server)))
        return out
    except AssertionError as e:
        s.kill()
        raise AssertionError(f"{e}\noutput of the server:\n{s.communicate()[0]}") from None
    finally:
        s.kill()
        s.communicate()


NODE0 = "198.18.0.1"


def test_rdmacm_utils():
    for fabric in ("", "link=ethernet"):
        out = run_cm_pair(["rping", "-s", "-C", 5], ["rping", "-c", "-v", "-C", 5, "-a", NODE0], fabric)
        assert "rdma-ping-4" in out, out
        for program in ("ucmatose", "udaddy"):
            out = run_cm_pair([program], [program, "-s", NODE0], fabric)
            assert "return status 0" in out, out
    run_cm_pair(["rdma_server"], ["rdma_client", "-s", NODE0])
    for kind in ("r", "x"):
        run_cm_pair(["rdma_xserver", "-c", kind], ["rdma_xclient", "-c", kind, "-s", NODE0])
    out = run_cm_pair(["cmtime"], ["cmtime", "-s", NODE0, "-c", 10], ends=False)
    assert "disconnect" in out, out
    out = run_program(["rping", "-c", "-C", 1, "-a", NODE0, "-p", 9], env=make_env("nodes=2"), status=None)
    assert "RDMA_CM_EVENT_REJECTED, error 8" in out, out


def read_workflow():
    """Returns {name of a step: (its commands, its SOFTIB_FABRIC)} of the example workflow, for the steps after the build."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "..", "..", "docs", "examples", "rdma-without-hardware.yml")) as f:
        _, *steps = f.read().split("      - name: ")
    found = {}
    for step in steps:
        name, rest = step.split("\n", 1)
        fabric = re.search(r"^ +SOFTIB_FABRIC: (.*)$", rest, re.M)
        commands = re.search(r"^ +run: (?:\|\n)?(.*)", rest, re.M | re.S)
        found[name] = textwrap.dedent(commands[1]), fabric[1] if fabric else ""
    found.pop("Build softib")
    return found


def test_workflow():
    """The steps of the workflow that docs/softib.md offers to other projects, as GitHub runs them: by bash -e."""
    require_programs("bash", "ss", "ibv_rc_pingpong", "rping")
    steps = read_workflow()
    assert len(steps) == 3, steps
    for link in ("infiniband", "ethernet"):
        port = free_port()
        for name, (commands, fabric) in steps.items():
            commands = commands.replace("${{ matrix.link }}", link).replace("18515", str(port))
            commands = commands.replace("ibv_rc_pingpong", f"ibv_rc_pingpong -p {port}")
            fabric = fabric.replace("${{ matrix.link }}", link) + f" name=workflow-{secrets.token_hex(4)}"
            with scratch_folder() as d:
                os.symlink(BUILD, os.path.join(d, "softib"))
                out = run_program(["bash", "-e", "-c", commands], env=make_env(fabric), cwd=d)
            assert out, f"the step {name} printed nothing"


def test_rsockets():
    """Few and large transfers: rdma-core's programs poll without pause, which takes long on a loaded machine."""
    for fabric in ("", "link=ethernet"):
        for mode in (["-T", "v"], ["-T", "v", "-T", "b"], ["-T", "v", "-T", "a"]):
            for program in ("rstream", "riostream"):
                cmd = [program, *mode, "-I", 3, "-C", 4, "-S", 100000]
                out = run_cm_pair(cmd, [*cmd, "-s", NODE0], fabric)
                assert "custom" in out, out
    with scratch_folder() as d:
        source, copy = os.path.join(d, "source"), os.path.join(d, "copy")
        with open(source, "wb") as f:
            f.write(secrets.token_bytes(3000001))
        run_cm_pair(["rcopy"], ["rcopy", source, f"{NODE0}:{copy}"], ends=False)
        with open(source, "rb") as a, open(copy, "rb") as b:
            assert a.read() == b.read(), "the copy differs"


def test_rdmacm_perftest():
    for op in (f"{verb}_{kind}" for verb in ("send", "write", "read", "atomic") for kind in ("lat", "bw")):
        cmd = [f"ib_{op}", "-R", "-F", "-n", 20]
        out = run_cm_pair(cmd, [*cmd, NODE0], "link=ethernet" if op.endswith("lat") else "")
        assert "#bytes" in out, out


def find_machine_address():
    """An address of this machine that is not the loopback address, which libfabric ignores."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # sends nothing
            return s.getsockname()[0]
        except OSError:
            raise Skip("this machine has only the loopback address") from None


def test_libfabric():
    require_programs("fi_pingpong")
    address = find_machine_address()
    for endpoint, provider in (("msg", "verbs"), ("dgram", "verbs"), ("rdm", "verbs;ofi_rxm")):
        port, fabric = free_port(), make_env(f"name=cm-{secrets.token_hex(4)}")
        cmd = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", 5, "-S", 1024]
        server = start_program([*cmd, "-B", port], env=fabric)
        try:
            wait_until(lambda: port_is_listening(port, server.pid), "fi_pingpong", server)
            out = run_program([*cmd, "-P", port, address], env=fabric)
            assert "1k" in out, out
        finally:
            server.kill()
            server.communicate()


def test_rdmacm_multicast():
    """mckey sleeps for seconds, so both fabrics are tested at once."""
    require_programs("mckey")
    kinds = [make_env(f"name=cm-{secrets.token_hex(4)} nodes=2 {fabric}", 0) for fabric in ("", "link=ethernet")]
    receivers = [start_program(["stdbuf", "-oL", "mckey", "-m", "239.1.2.3"], env=e) for e in kinds]
    for receiver in receivers:
        for line in receiver.stdout:
            if "receiving data" in line:
                break
    senders = [start_program(["mckey", "-s", "-m", "239.1.2.3"], env={**e, "SOFTIB_NODE": "1"}) for e in kinds]
    for program in senders + receivers:
        out = finish_program(program, "mckey")
        assert "return status 0" in out, out


UCX = {"UCX_NET_DEVICES": "softib0:1"}


def test_ucx_perftest():
    require_programs("ucx_perftest")
    for tls in ("rc", "ud"):
        for kind in ("tag_lat", "tag_bw", "ucp_put_lat", "ucp_get"):
            out = run_server_and_client(["ucx_perftest", "-t", kind, "-n", 300, "-s", 4096],
                                        server_env=make_env(UCX_TLS=f"{tls},self", **UCX))
            assert "Final:" in out or out == "", out


RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    int r, n, sum, mine;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int size = 1; size <= 1 << 20; size *= 8)
        for (int it = 0; it < 5; it++) {
            unsigned char *a = malloc(size), *b = calloc(1, size);
            int from = (r + n - 1) % n;
            for (int i = 0; i < size; i++)
                a[i] = (unsigned char)(i * 7 + r + it);
            MPI_Sendrecv(a, size, MPI_BYTE, (r + 1) % n, 5, b, size, MPI_BYTE, from, 5, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            for (int i = 0; i < size; i++)
                if (b[i] != (unsigned char)(i * 7 + from + it)) {
                    printf("rank %d: wrong byte %d of %d\n", r, i, size);
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
            free(a);
            free(b);
        }
    mine = r + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != n * (n + 1) / 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (!r)
        printf("all data is correct on %d ranks\n", n);
    MPI_Finalize();
    return 0;
}
"""


def run_mpi_ring(compiler, launch, **settings):
    require_programs(compiler, launch[0])
    with scratch_folder() as d:
        source, binary = os.path.join(d, "ring.c"), os.path.join(d, "ring")
        with open(source, "w") as f:
            f.write(RING)
        run_program([compiler, source, "-o", binary])
        for n in (2, 4):
            out = run_program([*launch, "-n", n, binary], env=make_env(TMPDIR=d, **settings))
            assert f"all data is correct on {n} ranks" in out, out


OMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]


def test_openmpi_openib():
    run_mpi_ring("mpicc.openmpi", [*OMPI, "--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1"])


def test_openmpi_ucx():
    run_mpi_ring("mpicc.openmpi", [*OMPI, "--mca", "pml", "ucx", "--mca", "btl", "^openib"], UCX_TLS="rc,self", **UCX)


def test_mpich_ucx():
    run_mpi_ring("mpicc.mpich", ["mpirun.mpich"], UCX_TLS="rc,self", **UCX)
    run_mpi_ring("mpicc.mpich", ["mpirun.mpich"], UCX_TLS="ud,self", **UCX)


run_tests(collect_tests(globals()))
