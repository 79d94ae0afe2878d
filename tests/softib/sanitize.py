"""Builds softib and its tests again with a sanitizer and runs them: sanitize.py SOURCE address|thread

Leak checking is off: programs may exit with their verbs objects open, and the checker would read through every peer's
arena. Killed processes are left to the plain build, the thread sanitizer does not survive a fork with threads.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys

FLAGS = {"address": "-fsanitize=address,undefined -fno-sanitize-recover=all", "thread": "-fsanitize=thread"}


def main():
    source, kind = sys.argv[1:]
    build = os.path.join(os.environ["SOFTIB_BUILD"], f"softib-{kind}-sanitizer")
    probe = subprocess.run(["cc", *FLAGS[kind].split(), "-x", "c", "-", "-o", "/dev/null"], input="int main(void){return 0;}",
                           text=True, capture_output=True)
    if probe.returncode:
        print(f"SKIPPED: the compiler has no {kind} sanitizer here")
        sys.exit(77)
    subprocess.run(["cmake", "-S", source, "-B", build, "-DSOFTIB_SANITIZED=ON", "-DCMAKE_BUILD_TYPE=None",
                    f"-DCMAKE_C_FLAGS={FLAGS[kind]} -O1 -g"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--parallel", "2"], check=True, stdout=subprocess.DEVNULL)
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", TSAN_OPTIONS="exitcode=66 halt_on_error=1")
    skip = ["-E", "t_kill|barrier_logic|fuzz_frame" if kind == "thread" else "t_kill"]  # pure functions have no races
    sys.exit(subprocess.run(["ctest", "--test-dir", build, "-L", "softib", "--output-on-failure", *skip], env=env).returncode)


main()
