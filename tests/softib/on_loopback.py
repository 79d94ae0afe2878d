#!/usr/bin/env python3
"""Runs a command with SOFTIB_FABRIC set to two nodes on the loopback interface with wire=tcp, on free port
numbers: on_loopback.py CMD... Extra settings of the fabric come from EXTRA_FABRIC.

SPDX-License-Identifier: Apache-2.0
"""
import os
import secrets
import socket
import sys


def free_range(taken=()):
    """The first of 64 consecutive port numbers that are free for TCP and UDP now."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            base = probe.getsockname()[1]
        if base > 64000 or any(abs(base - t) < 64 for t in taken):
            continue
        held = []
        try:
            for port in range(base, base + 64):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    s = socket.socket(socket.AF_INET, kind)
                    held.append(s)
                    s.bind(("127.0.0.1", port))
            return base
        except OSError:
            continue
        finally:
            for s in held:
                s.close()


def main():
    a = free_range()
    b = free_range((a,))
    os.environ["SOFTIB_FABRIC"] = f"nodes=2 wire=tcp base={a} {os.environ.get('EXTRA_FABRIC', '')} node1: base={b}"
    os.environ.setdefault("SOFTIB_KEY", secrets.token_hex(16))
    os.execvp(sys.argv[1], sys.argv[1:])


main()
