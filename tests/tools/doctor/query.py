#!/usr/bin/env python3
"""mpiexec reports why a job hangs: by -hang-after, by SIGQUIT, after which the job continues, and by -timeout, which ends the
job. Also the tables, the live view and the graph of the same job.

    query.py BIN ZOO
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import xml.dom.minidom

BIN, ZOO = sys.argv[1:3]
LIMIT = 120
ANSWER = "Deadlock: ranks 0 and 1 wait for each other"


def start_job(*options, program="ring"):
    return subprocess.Popen(
        [f"{BIN}/mpiexec", "-n", "2", *options, ZOO, program], stderr=subprocess.PIPE, text=True, bufsize=1
    )


def wait_for_diagnosis(job, what):
    """Reads mpiexec's output until the diagnosis has arrived."""
    seen = []
    watchdog = threading.Timer(LIMIT, job.kill)
    watchdog.start()
    for line in job.stderr:
        seen.append(line)
        if ANSWER in line:
            break
    else:
        sys.exit(f"{what}: no answer, but:\n" + "".join(seen))
    watchdog.cancel()


def run_tool(*words):
    return subprocess.run([f"{BIN}/fishplate", *words], capture_output=True, text=True)


def check_tables(job):
    """`fishplate ps` as text and as JSON."""
    table = run_tool("ps", str(job.pid)).stdout
    if table.count("waits") != 2 or table.count("MPI_Recv(from") != 2:
        sys.exit(f"fishplate ps:\n{table}")
    if not re.match(r"Job fp\S+: 2 ranks on 1 host: zoo of user \S+, since \d+:\d\d$", table.splitlines()[0]):
        sys.exit(f"fishplate ps does not name the program, its user and its age:\n{table}")
    jobs = json.loads(run_tool("ps", "--json").stdout)["jobs"]
    mine = [j for j in jobs if j["job"].startswith(f"fp{job.pid}-")]
    if len(mine) != 1 or [r["state"] for r in mine[0]["ranks"]] != ["waits", "waits"]:
        sys.exit(f"fishplate ps --json: {mine}")
    if run_tool("ps", "no such job").returncode != 2:
        sys.exit("fishplate ps found a job that is not there")


def check_live_view(job):
    """The live view (`ps --watch`) shows the ranks on a terminal, and restores the terminal when it ends."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(f"{BIN}/fishplate", ["fishplate", "ps", "--watch=0.2", str(job.pid)])
    watchdog = threading.Timer(LIMIT, os.kill, (child, signal.SIGKILL))
    watchdog.start()
    seen = b""
    try:
        while b"MPI_Recv(from 0, tag 5" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"q")
        while True:
            seen += os.read(terminal, 4096)
    except OSError:  # the other end is closed
        pass
    status = os.waitpid(child, 0)[1]
    watchdog.cancel()
    if status != 0 or b"\x1b[?1049h" not in seen or not seen.rstrip().endswith(b"\x1b[?25h\x1b[?1049l"):
        sys.exit(f"fishplate ps --watch: status {status}, {seen}")


def check_graph(job):
    """The page of `why --html` is well-formed, and its graph shows two nodes that wait for each other."""
    with tempfile.NamedTemporaryFile(suffix=".html") as page:
        run_tool("why", "--html", page.name, str(job.pid))
        if not shutil.which("node"):
            return
        renderer = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "render_page.js")
        text = subprocess.run(["node", renderer, page.name], capture_output=True, text=True, check=True).stdout
    page = xml.dom.minidom.parseString(text)
    nodes = [n for n in page.getElementsByTagName("rect") if n.getAttribute("class") == "stuck"]
    edges = [e for e in page.getElementsByTagName("path") if "bad" in e.getAttribute("class")]
    if len(nodes) != 2 or len(edges) != 2:
        sys.exit(f"fishplate why --html: {len(nodes)} nodes, {len(edges)} edges:\n{text}")


def check_hang_after_and_sigquit():
    job = start_job("-hang-after", "1")
    wait_for_diagnosis(job, "-hang-after")
    job.send_signal(signal.SIGQUIT)
    wait_for_diagnosis(job, "SIGQUIT")
    if job.poll() is not None:
        sys.exit("the job ended because it was queried")
    check_tables(job)
    check_live_view(job)
    check_graph(job)
    job.send_signal(signal.SIGTERM)
    job.communicate()


def check_timeout():
    """mpiexec -timeout prints the diagnosis. On a slow machine the ranks may not be connected yet: then a larger limit is tried."""
    for seconds in (1, 5, 30):
        job = start_job("-timeout", str(seconds))
        said = job.communicate()[1]
        if job.returncode != 124:
            sys.exit(f"-timeout: status {job.returncode} instead of 124:\n{said}")
        if ANSWER in said and "Still running: ranks 0-1" in said:
            return
    sys.exit(f"-timeout: no answer, but:\n{said}")


def check_program_without_mpi():
    """A program without MPI: mpiexec reports nothing."""
    job = subprocess.Popen(
        [f"{BIN}/mpiexec", "-n", "1", "-timeout", "1", "sleep", "60"], stderr=subprocess.PIPE, text=True
    )
    said = job.communicate()[1]
    if job.returncode != 124 or "fishplate" in said:
        sys.exit(f"sleep: status {job.returncode}:\n{said}")


check_hang_after_and_sigquit()
check_timeout()
check_program_without_mpi()
print("-hang-after, SIGQUIT and -timeout answer")
