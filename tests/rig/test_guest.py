#!/usr/bin/env python3
"""test_guest: runs whose guest does not boot. A script replaces QEMU and writes the files of a real guest into the shared
folder.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import guest
import image

# Replaces QEMU: one behaviour for `-accel kvm`, one for emulation. `boots` runs all jobs of the list with status 0.
QEMU = """#!/bin/sh
behaviour={emulated}
for word; do
    [ "$word" != kvm ] || behaviour={kvm}
    case "$word" in local,id=share,path=*) share=${{word#local,id=share,path=}} share=${{share%%,*}} ;; esac
done
echo "$behaviour" >>{log}
boot() {{
    echo "rig: booted"
    while read -r name rest; do
        echo 1 >"$share/$name.start"
        [ "$behaviour" != breaks ] || [ "$name" = first ] || {{ echo "KVM internal error. Suberror: 1"; exec sleep 600; }}
        echo 0 >"$share/$name.rc"
    done <"$share/todo"
}}
case $behaviour in
boots | breaks) boot ;;
silent) exec sleep 600 ;;
error) echo "KVM internal error. Suberror: 1"; echo "emulation failure"; exec sleep 600 ;;
closed) echo "Could not access KVM kernel module: No such device"; exit 1 ;;
panic) echo "rig: booted"; echo "Kernel panic - not syncing: no init"; exec sleep 600 ;;
esac
"""


class Boot(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.log = os.path.join(self.scratch.name, "log")
        image.find_qemu = lambda: os.path.join(self.scratch.name, "qemu")
        image.prepare_files = lambda folder: ("kernel", "initramfs")
        image.guest_architecture = lambda: "x86_64"
        guest.KVM = self.scratch.name  # a file that exists and can be opened
        guest.SILENCE = {"kvm": 1, "emulation": 180}

    def run_jobs(self, kvm, emulated, can_wait=()):
        """Returns the jobs, the output, and the behaviours of the started QEMUs."""
        with open(image.find_qemu(), "w") as f:
            f.write(QEMU.format(kvm=kvm, emulated=emulated, log=self.log))
        os.chmod(image.find_qemu(), 0o755)
        jobs, reported = [guest.Job(n, "none", 600, "true", n in can_wait) for n in ("first", "second", "third")], []
        with contextlib.redirect_stdout(io.StringIO()) as out:
            guest.run_jobs(os.path.join(self.scratch.name, "rig"), "build", jobs, reported.append)
        self.assertEqual(sorted(reported, key=jobs.index), jobs)
        with open(self.log) as f:
            return jobs, out.getvalue(), f.read().split()

    def check_fallback(self, kvm, reason, starts):
        jobs, out, starts_seen = self.run_jobs(kvm, "boots")
        self.assertEqual([j.status for j in jobs], [0, 0, 0])
        self.assertEqual(starts_seen, starts)
        self.assertEqual(out.count("\n"), 1, out)
        self.assertIn("emulated from here on", out)
        self.assertIn(reason, out)

    def test_kvm_that_works_is_used(self):
        _, out, starts_seen = self.run_jobs("boots", "panic")
        self.assertEqual((out, starts_seen), ("", ["boots"]))

    def test_kvm_that_reports_an_internal_error(self):
        self.check_fallback("error", "KVM internal error", ["error", "boots"])

    def test_kvm_that_breaks_during_a_job_blames_no_job(self):
        self.check_fallback("breaks", "KVM internal error", ["breaks", "boots"])

    def test_kvm_that_prints_nothing(self):
        self.check_fallback("silent", "printed nothing in 1 s", ["silent", "boots"])

    def test_kvm_that_does_not_open(self):
        self.check_fallback("closed", "No such device", ["closed", "boots"])

    def test_jobs_that_can_wait_are_left_out_when_emulated(self):
        jobs, out, _ = self.run_jobs("error", "boots", ("second",))
        self.assertEqual([j.status for j in jobs], [0, guest.SKIPPED, 0])
        self.assertIn("1 jobs are left out", out)
        jobs, out, transports = self.run_jobs("error", "boots", ("first", "second", "third"))
        self.assertEqual([j.status for j in jobs], [guest.SKIPPED] * 3)
        self.assertEqual(transports.count("boots"), 1)  # only in the first run

    def test_jobs_that_can_wait_are_run_with_kvm(self):
        jobs, out, _ = self.run_jobs("boots", "panic", ("second",))
        self.assertEqual(([j.status for j in jobs], out), ([0, 0, 0], ""))

    def test_a_boot_that_fails_ends_the_run_with_the_console(self):
        with self.assertRaisesRegex(guest.BootFailed, "(?s)panicked.*Kernel panic - not syncing: no init"):
            self.run_jobs("error", "panic")
        with open(self.log) as f:
            self.assertEqual(f.read().split(), ["error", "panic"])


if __name__ == "__main__":
    unittest.main()
