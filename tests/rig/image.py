"""The guest's boot files: a stock Debian kernel, unpacked but not installed, and an initramfs of busybox and the few
modules that soft-RoCE needs. All files are in the rig's folder of the build directory and are created once.

SPDX-License-Identifier: Apache-2.0
"""
import glob
import lzma
import os
import platform
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DEBIAN_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}

# Modules in the order of loading, after their dependencies. crc32_generic (and on x86 the fast variant) is requested by name at
# run time: without it `rdma link add` fails with ENOENT, although no module lists it as a dependency.
MODULES = ("crc32_generic virtio_pci 9pnet_virtio 9p overlay dummy veth sch_netem virtio_net "
           "ib_uverbs rdma_rxe rdma_ucm ib_umad nfsd nfsv4").split()
OPTIONAL = {"x86_64": ["crc32_pclmul"], "aarch64": ["crct10dif_ce"]}


class Missing(Exception):
    """Something is missing on this machine and cannot be installed: the rig is skipped with this reason."""


def guest_architecture():
    name = platform.machine()
    if name not in DEBIAN_ARCH:
        raise Missing(f"no recipe for a {name} guest")
    return name


def run_command(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise Missing(f"'{' '.join(command)}' failed: {done.stdout.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout


def find_program(program, package):
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if not path:
        raise Missing(f"{program} is not installed (package {package})")
    return path


def find_kernel_package():
    """Returns the kernel package that Debian's meta package depends on."""
    meta = f"linux-image-{DEBIAN_ARCH[guest_architecture()]}"
    for line in run_command("apt-cache", "depends", meta).splitlines():
        word = line.split()
        if len(word) == 2 and word[0] == "Depends:" and word[1].startswith("linux-image-"):
            return word[1]
    raise Missing(f"the package lists do not know {meta}")


def fetch_kernel(folder):
    """Unpacks the kernel package into folder/kernel. A stamp file marks a complete folder."""
    kernel, stamp = os.path.join(folder, "kernel"), os.path.join(folder, "kernel.stamp")
    if os.path.exists(stamp):
        return kernel
    find_program("apt-get", "apt")
    shutil.rmtree(kernel, ignore_errors=True)
    download = os.path.join(folder, "download")
    shutil.rmtree(download, ignore_errors=True)
    os.makedirs(download)
    run_command("apt-get", "download", "-q", find_kernel_package(), cwd=download)
    package = glob.glob(os.path.join(download, "*.deb"))[0]
    run_command("dpkg-deb", "-x", package, kernel)
    version = os.listdir(os.path.join(kernel, "lib", "modules"))[0]
    run_command(find_program("depmod", "kmod"), "-b", kernel, version)
    shutil.rmtree(download)
    with open(stamp, "w") as f:
        f.write(version + "\n")
    return kernel


def decompress_kernel(packed, path):
    """Decompresses the kernel to an ELF file, which QEMU starts directly (PVH). Decompression on an emulated processor is slow."""
    with open(packed, "rb") as f:
        data = f.read()
    at = data.find(b"\xfd7zXZ\0")
    if at < 0:
        return False
    with open(path, "wb") as f:
        f.write(lzma.LZMADecompressor().decompress(data[at:]))
    return True


def find_boot_image(kernel, folder):
    packed = glob.glob(os.path.join(kernel, "boot", "vmlinuz-*"))[0]
    if guest_architecture() == "x86_64":
        path = os.path.join(folder, "vmlinux")
        if os.path.exists(path) or decompress_kernel(packed, path):
            return path
    return packed


def list_module_files(kernel):
    """Returns the .ko files in the order of loading."""
    version = os.listdir(os.path.join(kernel, "lib", "modules"))[0]
    found = []
    for name in OPTIONAL[guest_architecture()] + MODULES:
        try:
            listing = run_command(find_program("modprobe", "kmod"), "-d", kernel, "-S", version, "--show-depends", name)
        except Missing:
            if name in OPTIONAL[guest_architecture()]:
                continue
            raise
        for line in listing.splitlines():
            word = line.split()
            if word[0] == "insmod" and word[1] not in found:
                found.append(word[1])
    return found


def make_initramfs(kernel, folder):
    path = os.path.join(folder, "initramfs.cpio")
    root = tempfile.mkdtemp(prefix="initramfs-", dir=folder)
    for d in ("bin", "dev", "proc", "sys", "mnt", "modules"):
        os.makedirs(os.path.join(root, d))
    shutil.copy(find_program("busybox", "busybox-static"), os.path.join(root, "bin", "busybox"))
    shutil.copy(os.path.join(HERE, "guest", "init"), os.path.join(root, "init"))
    os.chmod(os.path.join(root, "init"), 0o755)
    with open(os.path.join(root, "modules", "order"), "w") as order:
        for module in list_module_files(kernel):
            shutil.copy(module, os.path.join(root, "modules"))
            order.write(os.path.basename(module) + "\n")
    names = run_command("find", ".", cwd=root)
    with open(root + ".cpio", "wb") as out:  # written to another name, since another guest may be booting from the present file
        subprocess.run([find_program("cpio", "cpio"), "-o", "-H", "newc", "--quiet", "-R", "0:0"], input=names.encode(),
                       stdout=out, cwd=root, check=True)
    os.replace(root + ".cpio", path)
    shutil.rmtree(root)
    return path


def find_qemu():
    packages = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm"}
    return find_program(f"qemu-system-{guest_architecture()}", packages[guest_architecture()])


def prepare_files(folder):
    """Creates the kernel and the initramfs in the folder, and returns their paths."""
    os.makedirs(folder, exist_ok=True)
    find_qemu()
    kernel = fetch_kernel(folder)
    return find_boot_image(kernel, folder), make_initramfs(kernel, folder)
