"""The fault matrix: the situations, the faults, and the correct endings of each pair.

SPDX-License-Identifier: Apache-2.0
"""
import re
from dataclasses import dataclass, field

COMPLETES, ENDS = "completes", "ends"


@dataclass
class Situation:
    name: str
    traffic: str  # the argument of faults_traffic
    env: dict = field(default_factory=dict)


def _without_rings(**env):
    return {"FISHPLATE_IB_POLLSET": "0", **env}


def _rendezvous_situation(name):
    return Situation(name, "large", _without_rings(FISHPLATE_RENDEZVOUS=name))


def _flow_control_situation(name):
    return Situation("flow " + name, "flood", _without_rings(FISHPLATE_LAB="IB_FLOW=" + name, FISHPLATE_IB_BUFFERS="2"))


SITUATIONS = [
    Situation("eager", "small", _without_rings()),
    *[_rendezvous_situation(name) for name in ("rput", "getcqe", "get", "putnr", "put", "r3")],
    *[_flow_control_situation(name) for name in ("hw", "static", "dynamic")],
    Situation("shared queues", "flood", _without_rings(FISHPLATE_IB_RECEIVE="shared")),
    Situation("rings", "small", {"FISHPLATE_IB_POLLSET": "16"}),
    Situation("collectives", "collectives"),
    Situation("start", "start", {"FISHPLATE_IB_CONNECT": "static"}),
    Situation("finalize", "finalize"),
]


@dataclass
class Fault:
    name: str
    what: str = ""  # FAULTS_WHAT of the rank that causes the fault
    right: tuple = (COMPLETES,)  # correct endings of a fault in the middle of traffic
    explanation: str = ""  # pattern in the job's standard error that explains an ending
    env: dict = field(default_factory=dict)
    fabric: str = ""  # settings for SOFTIB_FABRIC in addition to the number of nodes
    agents: bool = False  # hosts are reached through agents instead of virtual nodes
    limits: dict = field(default_factory=dict)  # resource limits by name, without the prefix RLIMIT_
    wrap: str = ""  # "deny": process_vm_readv is refused; "full": /dev/shm is full
    timeout: int = 60  # mpiexec's -timeout in seconds
    within: str = ""  # shell commands of each rank before the program
    resume: bool = False  # a stopped rank is continued by the driver
    kept: dict = field(default_factory=dict)  # environment that a situation's settings must not override


NETWORK = r"the connection to rank \d+ .* failed|has been down for"
NO_PORT = r"is active|DOWN"  # message of a job that starts while the port is down
FAULTS = [
    Fault("nothing"),
    Fault("rank killed", "kill", (ENDS,), r"Rank \d+ .*(killed|signal 9|SIGKILL)"),
    Fault("rank stopped for a second", "stop", resume=True),
    Fault("rank stopped for good", "stop", (ENDS,), r"time ?limit|-timeout|still running|did not end", timeout=6),
    Fault("mpiexec killed", "front", (ENDS,), r"first process of mpiexec was killed"),
    Fault("mpiexec's worker killed", "worker", (ENDS,), r"worker process of mpiexec was killed by signal 9"),
    Fault("agent killed", "worker", (ENDS,), r"Host \w+, with \d+ ranks?, was lost|worker process of mpiexec was killed",
          agents=True),
    Fault("datagrams lost", fabric="ud_loss=0.3"),
    Fault("datagrams duplicated", fabric="ud_dup=0.3"),
    Fault("datagrams reordered", fabric="ud_reorder=0.3"),
    Fault("RNR storm", "away", kept={"FISHPLATE_IB_BUFFERS": "2"}, env={"FISHPLATE_LAB": "IB_FLOW=hw"}),
    Fault("port down and up", "port-flap", explanation=NO_PORT, env={"FISHPLATE_IB_TIMEOUT": "17"}),
    Fault("port down for good", "port-down", (ENDS,), NETWORK + "|" + NO_PORT, env={"FISHPLATE_IB_TIMEOUT": "10"}),
    Fault("queue pair error", "qp", explanation=r"the connection failed (during|while)"),
    Fault("/dev/shm full", wrap="full"),
    Fault("no CMA", right=(COMPLETES, ENDS), explanation=r"memory of (another )?process|process_vm", wrap="deny"),
    Fault("memlock 64 KiB", right=(COMPLETES, ENDS), explanation=r"memlock|lock", limits={"MEMLOCK": 64 << 10}),
    Fault("files 64", right=(COMPLETES, ENDS), explanation=r"files|descriptors|Too many open files", limits={"NOFILE": 64}),
    *[Fault(f"files {n} a rank", right=(COMPLETES, ENDS), explanation=r"ulimit -n", within=f"ulimit -n {n}") for n in (18, 16, 14)],
    Fault("500 MB a rank", right=(COMPLETES, ENDS), explanation=r"ulimit -v", within="ulimit -v 500000"),
    Fault("out of credits", "away", kept={"FISHPLATE_IB_BUFFERS": "2"}, env={"FISHPLATE_LAB": "IB_FLOW=static"}),
]


def correct_endings(fault, situation):
    """Returns the correct endings. A fault before the start or at the end of a job may have no effect, so the job may also complete."""
    late = fault.what and fault.right == (ENDS,) and situation.name in ("start", "finalize")
    no_port = fault.what == "port-flap" and situation.name == "start"
    unknown = fault.what == "qp" and situation.name == "put"  # the sender cannot know whether the receiver has seen the last byte
    return (COMPLETES, ENDS) if late or no_port or unknown else fault.right


def find_explanation(fault, text):
    """Returns the line of standard error that explains the ending, or None."""
    return next((line for line in text.splitlines() if re.search(fault.explanation, line)), None) if fault.explanation else None
