"""A bare Debian in a folder, created by mmdebstrap from the package sources of this machine. Commands run there in separate namespaces, so
that no mount and no process remains when a command ends.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import shutil
import subprocess

# The first process of the new namespaces: mounts /proc, /sys and /dev as on a machine, then runs the command.
ENTER = r"""set -e
root=$1
shift
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in null zero full random urandom tty; do
    : >"$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 pts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount --bind "$root/../archives" "$root/var/cache/apt/archives"
exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
"""


class Missing(Exception):
    """The reason why the root cannot be created on this machine."""


def read_codename():
    with open("/etc/os-release") as f:
        words = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
    if words.get("ID") != "debian":
        raise Missing("this machine does not run Debian")
    return words["VERSION_CODENAME"].strip('"')


def apt_sources(suite, folder="/etc/apt"):
    """Returns this machine's package sources of Debian in their form: [(suffix of the file, text)]. Package sources of others, whose suites
    have other names, are left out."""
    ours = re.compile(rf"{suite}(-updates|-security|/updates)?")
    paths = [os.path.join(folder, "sources.list")]
    parts = os.path.join(folder, "sources.list.d")
    if os.path.isdir(parts):
        paths += sorted(os.path.join(parts, name) for name in os.listdir(parts))
    lines, stanzas = [], []
    for path in paths:
        if not os.path.isfile(path):
            continue
        with open(path) as f:
            text = f.read()
        if path.endswith(".sources"):
            for stanza in re.split(r"\n[ \t]*\n", text):
                field = re.search(r"^Suites:(.*(?:\n[ \t].*)*)", stanza, re.M | re.I)
                if field and all(ours.fullmatch(word) for word in field[1].split()):
                    stanzas.append(stanza.strip("\n") + "\n")
        elif path.endswith(".list"):
            for line in text.splitlines():
                words = re.sub(r"\[[^]]*\]", "", line).split()
                if len(words) >= 4 and words[0] == "deb" and ours.fullmatch(words[2]):
                    lines.append(line + "\n")
    found = [(".list", "".join(lines))] if lines else []
    return found + ([(".sources", "\n".join(stanzas))] if stanzas else [])


def acquire_settings():
    """Returns apt's settings for access to the package sources: proxies, certificates, credentials of mirrors."""
    done = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True)
    return "".join(line + "\n" for line in done.stdout.splitlines() if re.match(r"Acquire::https?::", line))


class Root:
    def __init__(self, folder, run):
        """run(name, command): a function that runs a command with a progress line, and raises an exception if the command fails."""
        self.path, self.archives, self.run = os.path.join(folder, "root"), os.path.join(folder, "archives"), run
        if os.geteuid() != 0:
            raise Missing("making a root file system needs root")
        if not shutil.which("mmdebstrap"):
            raise Missing("mmdebstrap is not installed")
        self.remove()
        os.makedirs(self.archives, exist_ok=True)

    def make(self, packages):
        suite = read_codename()
        sources = apt_sources(suite)
        if not sources:
            raise Missing(f"the package sources of this machine do not name {suite}")
        settings = acquire_settings()
        folder = os.path.dirname(self.path)
        files = []
        for ending, text in sources:
            files.append(os.path.join(folder, "host" + ending))
            with open(files[-1], "w") as f:
                f.write(text)
        options = [f"--aptopt={line}" for line in settings.splitlines()]
        self.run("debian", ["mmdebstrap", "--mode=root", "--variant=apt", "--dpkgopt=force-unsafe-io", f"--include={','.join(packages)}", *options,
                            suite, self.path, *files])
        shutil.copy("/etc/resolv.conf", os.path.join(self.path, "etc/resolv.conf"))

    def enter(self, command):
        """Returns the command line that runs the command in the root."""
        return ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private",
                "sh", "-c", ENTER, "enter", self.path, *command]

    def remove(self):
        if os.path.isdir(self.path):
            subprocess.run(["rm", "-rf", "--one-file-system", self.path], check=True)
