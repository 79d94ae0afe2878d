#!/usr/bin/env python3
"""Tests `fishplate ps --watch` on a terminal of tmux: the ranks, the late rank, a change of the window size, and the restored screen.

    screen.py BIN ZOO
"""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN, ZOO = sys.argv[1:3]
LIMIT = 100


def main():
    if not shutil.which("tmux"):
        print("skipped: tmux is not installed")
        return 77
    job = subprocess.Popen([f"{BIN}/mpiexec", "-n", "6", ZOO, "missing"], stderr=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as at:
        tmux = ["tmux", "-f", "/dev/null", "-S", f"{at}/socket"]

        def read_screen():
            return subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True).stdout

        def wait_until(right, what):
            end = time.monotonic() + LIMIT
            while time.monotonic() < end:
                if right(read_screen()):
                    return
            sys.exit(f"{what}: the screen shows\n{read_screen()}")

        try:
            subprocess.run([*tmux, "new-session", "-d", "-x", "110", "-y", "20", "sh"], check=True)
            subprocess.run([*tmux, "send-keys", "PS1='before$ '; echo was here", "Enter"], check=True)
            wait_until(lambda s: "was here\n" in s, "the shell")
            watch = f"{BIN}/fishplate ps --watch=0.2 {job.pid}"
            subprocess.run([*tmux, "send-keys", watch, "Enter"], check=True)
            wait_until(
                lambda s: "6 ranks on 1 host" in s and s.count("MPI_Barrier(") == 5 and "Late: rank 5 for MPI_Barrier" in s,
                "the view",
            )
            if "was here" in read_screen():
                sys.exit(f"the view has no screen of its own:\n{read_screen()}")
            # In a window that is too low for all ranks the number of the hidden ranks is shown.
            subprocess.run([*tmux, "resize-window", "-x", "90", "-y", "12"], check=True)
            wait_until(lambda s: "more ranks" in s and "Late: rank 5" in s and len(s.split("\n")) <= 13, "a lower window")
            subprocess.run([*tmux, "send-keys", "q"], check=True)
            wait_until(lambda s: "was here" in s and "MPI_Barrier(" not in s, "the end of the view")
        finally:
            subprocess.run([*tmux, "kill-server"], capture_output=True)
            job.send_signal(signal.SIGTERM)
            job.wait()
    print("the live view is drawn, resized and taken away")
    return 0


sys.exit(main())
