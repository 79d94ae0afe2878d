"""Attacks on the connection between mpiexec and an agent, over loopback, with a second implementation of the protocol.

    attack.py agent MPIEXEC FOLDER          foreign processes answer an agent's connection
    attack.py crowd|files HOST WORDS...     a remote shell that first opens foreign connections to mpiexec's port
    attack.py between KIND HOST WORDS...    a remote shell that puts a relay between agent and mpiexec

Prints what went wrong and exits 1. The remote shells exit 1 too, which ends the job.
"""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import hmac
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time

# The kinds of frames, with the numbers of launcher/remote/link.h.
LINK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "launcher", "remote", "link.h")
FRAMES = re.findall(r"^ +FRAME_(\w+)(?: = 1)?,", open(LINK).read(), re.M)
HELLO, PROOF, CHALLENGE, TREE, PLAN = (FRAMES.index(name) + 1 for name in ("HELLO", "PROOF", "CHALLENGE", "TREE", "PLAN"))
SEAL = 16
WAIT = 60  # seconds until a test gives up on the other end


def encode_frame(kind, data, key=None, sequence=0):
    head = struct.pack(">IIII", len(data), kind, 0, 0)
    code = hmac.new(key, struct.pack(">Q", sequence) + head + data, hashlib.sha256).digest()[:SEAL] if key else b""
    return head + data + code


def compute_proof(cookie, label, hello, nonce):
    mine, text = hello[:32], hello[32:]
    return hmac.new(cookie, label + b"\0" + mine + nonce + text, hashlib.sha256).digest()


def encode_strings(*words):
    return struct.pack(">I", len(words)) + b"".join(encode_string(w) for w in words)


def encode_string(text):
    data = text.encode()
    return struct.pack(">I", len(data)) + data


def encode_plan(*argv):
    """The plan (launcher/remote/plan.c) of a job with one rank."""
    return (encode_string("job") + encode_string("a") + encode_string("(vector,(0,1,1))") + struct.pack(">IIIIIIIIIII", 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
            + struct.pack(">I", 1) + encode_strings(*argv) + encode_strings("PATH=/usr/bin:/bin") + encode_string("/") + struct.pack(">I", 0)
            + struct.pack(">I", 1) + struct.pack(">IIIIIII", 0, 0, 0, 0, 1, 0xFFFFFFFF, 0) + encode_string(""))


def read_frame(sock, more=0):
    data = b""
    while len(data) < 16 or len(data) < 16 + struct.unpack(">I", data[:4])[0] + more:
        piece = sock.recv(65536)
        if not piece:
            return None, data
        data += piece
    return struct.unpack(">I", data[4:8])[0], data[16:]


def open_server():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(64)
    server.settimeout(WAIT)
    return server


# Foreign processes that answer an agent.

def answer_hello(sock, kind, cookie, hello, mark):
    """Answers HELLO in the form `kind`. Every form tries to make the agent run `touch mark`."""
    nonce = os.urandom(32)
    true = kind in ("true", "unsealed", "repeated", "reordered")
    label = b"fishplate agent knows" if kind == "reflected" else b"fishplate mpiexec knows"
    proof = compute_proof(cookie if true or kind == "reflected" else b"0" * 32, label, hello, nonce)
    down = compute_proof(cookie if true else b"0" * 32, b"fishplate frames down", hello, nonce)
    if kind not in ("nothing", "silent-plan"):
        sock.sendall(encode_frame(CHALLENGE, nonce + proof))
    order = encode_plan("touch", mark)
    if true:
        wanted = compute_proof(cookie, b"fishplate agent knows", hello, nonce)
        got = read_frame(sock)
        if got != (PROOF, wanted):
            return f"{kind}: the agent's own proof is wrong: {got}"
    if kind == "unsealed":
        sock.sendall(encode_frame(TREE, b"") + encode_frame(PLAN, order))
    elif kind == "repeated":
        sock.sendall(encode_frame(TREE, b"", down, 0) + encode_frame(PLAN, order, down, 0))
    elif kind == "reordered":
        sock.sendall(encode_frame(PLAN, order, down, 1) + encode_frame(TREE, b"", down, 0))
    elif kind != "nothing":
        sock.sendall(encode_frame(TREE, b"", down, 0) + encode_frame(PLAN, order, down, 1))
    return None


def attack_agent(mpiexec, folder, kind):
    cookie = os.urandom(16).hex().encode()
    mark = os.path.join(folder, kind)
    received = b""
    with open_server() as server:
        agent = subprocess.Popen([mpiexec, "--fishplate-agent", "127.0.0.1", str(server.getsockname()[1]), "0"],
                                 stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        agent.stdin.write(cookie)
        agent.stdin.close()
        sock, _ = server.accept()
        sock.settimeout(WAIT)
        problem = None
        try:
            first, hello = read_frame(sock)
            received += hello
            problem = answer_hello(sock, kind, cookie, hello, mark) if first == HELLO else f"{kind}: first frame is {first}"
            if kind == "nothing":
                sock.close()
                server.close()
            while sock.fileno() >= 0 and (piece := sock.recv(65536)):
                received += piece
                if kind == "true" and os.path.exists(mark):
                    sock.close()
        except (ConnectionError, TimeoutError) as error:
            problem = problem or (str(error) if isinstance(error, TimeoutError) else None)
        errors = agent.stderr.read().decode()
        agent.wait(WAIT)
    if problem:
        return problem
    if cookie in received or bytes.fromhex(cookie.decode()) in received:
        return f"{kind}: the agent sent its cookie"
    if os.path.exists(mark) != (kind == "true"):
        return f"{kind}: the command was{'' if kind != 'true' else ' not'} run; the agent printed: {errors}"
    if agent.returncode == 0 and kind != "true":
        return f"{kind}: the agent's exit status is 0"
    if kind in ("false", "reflected") and "cannot prove" not in errors:
        return f"{kind}: the agent's message does not give the reason: {errors}"
    return None


def attack_agents(mpiexec, folder):
    kinds = ("true", "silent-plan", "false", "reflected", "unsealed", "repeated", "reordered", "nothing")
    problems = [p for p in (attack_agent(mpiexec, folder, k) for k in kinds) if p]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


# Foreign connections to mpiexec's port. This process is a remote shell: its parent is mpiexec's worker.

def read_memory_kib(name):
    with open(f"/proc/{os.getppid()}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))


def read_cpu_ticks():
    with open(f"/proc/{os.getppid()}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def connect_to(port):
    sock = socket.create_connection(("127.0.0.1", port), WAIT)
    return sock


def wait_for_close(sock):
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def send_frames(port, *frames):
    """Sends these frames; true if mpiexec closes the connection in time."""
    with connect_to(port) as sock:
        try:
            for each in frames:
                sock.sendall(each)
        except ConnectionError:
            pass
        return wait_for_close(sock)


def wait_until_idle():
    """Waits for half a second in which mpiexec uses at most two clock ticks."""
    for _ in range(40):
        before = read_cpu_ticks()
        time.sleep(0.5)
        if read_cpu_ticks() - before <= 2:
            return True
    return False


def attack_mpiexec(words, few_files):
    port = int(words[words.index("--fishplate-agent") + 2])
    hello = os.urandom(32) + b"0\0" + b"0.0.0\0"
    before = read_memory_kib("VmRSS")
    waiting = [connect_to(port) for _ in range(24 if few_files else 300)]
    for sock in waiting[::2]:
        try:
            sock.sendall(encode_frame(HELLO, hello))
        except ConnectionError:
            pass
    if not wait_until_idle():
        return "mpiexec uses processor time for connections that send nothing"
    if not few_files:
        for frames in ([encode_frame(TREE, b"")], [encode_frame(PLAN, encode_plan("true"))], [encode_frame(PROOF, bytes(32))],
                       [encode_frame(HELLO, hello), encode_frame(PROOF, bytes(32))], [encode_frame(HELLO, os.urandom(32) + b"77\0x\0")],
                       [b"GET / HTTP/1.0\r\n\r\n"], [struct.pack(">IIII", 1 << 30, HELLO, 0, 0)],
                       [encode_frame(HELLO, hello)] * 3):
            send_frames(port, *frames)
        # Sends until mpiexec accepts no more bytes, without reading the answers.
        flood = encode_frame(HELLO, hello) * 4096
        for _ in range(30):
            send_frames(port, flood)
    grown = read_memory_kib("VmRSS") - before
    if grown > 8192:
        return f"mpiexec grew by {grown} KB"
    # mpiexec finally closes every waiting connection, including the last one.
    wait_for_close(waiting[-1])
    return None


def run_attacking_shell(words, few_files):
    problem = attack_mpiexec(words, few_files)
    if problem:
        print(problem, file=sys.stderr)
        return 1
    # Some connections remain open while the agent connects.
    for _ in range(5):
        os.set_inheritable(connect_to(int(words[3])).detach(), True)
    os.execvp(words[0], words)


# A relay between mpiexec and its agent.

def relay_bytes(server, port, kind, cookie):
    agent, _ = server.accept()
    above = socket.create_connection(("127.0.0.1", port), WAIT)
    seen = {agent: b"", above: b""}
    other = {agent: above, above: agent}
    # Bytes of the handshake in each direction: a HELLO and a PROOF from the agent, a CHALLENGE from mpiexec. Only later bytes are changed.
    spared = {agent: None, above: 16 + 64}
    while True:
        for sock in select.select([agent, above], [], [], WAIT)[0]:
            data = sock.recv(65536)
            if not data:
                return seen
            start = len(seen[sock])
            seen[sock] += data
            if sock is agent and spared[agent] is None and len(seen[agent]) >= 16:
                spared[agent] = 16 + struct.unpack(">I", seen[agent][:4])[0] + 16 + 32
            first = max(spared[sock] - start, 0) if spared[sock] else len(data)
            mine = (kind == "down" and sock is above) or (kind == "up" and sock is agent)
            if mine and first < len(data):
                data = data[:-1] + bytes([data[-1] ^ 1])
            if kind == "twice" and sock is above and first < len(data):
                data += data[first:]
            try:
                other[sock].sendall(data)
            except ConnectionError:
                return seen


def run_relaying_shell(kind, words):
    at = words.index("--fishplate-agent")
    port = int(words[at + 2])
    cookie = sys.stdin.buffer.read()
    with open_server() as server:
        words[at + 1:at + 3] = ["127.0.0.1", str(server.getsockname()[1])]
        agent = subprocess.Popen(words, stdin=subprocess.PIPE)
        agent.stdin.write(cookie)
        agent.stdin.close()
        seen = relay_bytes(server, port, kind, cookie)
    for data in seen.values():
        if cookie in data:
            print("the relay saw the cookie", file=sys.stderr)
            return 1
    for sock in seen:
        sock.close()
    return agent.wait()


def main():
    words = sys.argv[2:]
    if sys.argv[1] == "agent":
        return attack_agents(*words)
    if sys.argv[1] in ("crowd", "files"):
        return run_attacking_shell(words[1:], sys.argv[1] == "files")
    return run_relaying_shell(words[0], words[2:])


if __name__ == "__main__":
    sys.exit(main())
