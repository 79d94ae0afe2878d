#!/bin/sh
# deb.sh BIN: CPack's Debian package has the right description and dependencies, is installed by dpkg in a separate root, works
# there, and leaves nothing behind when it is removed.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v dpkg-deb >/dev/null 2>&1 || skip "dpkg-deb is not here"

cpack --config "$(dirname "$BIN")/CPackConfig.cmake" -G DEB -B "$scratch/deb" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    fail "cpack"
}
deb=$(ls "$scratch"/deb/fishplate_*.deb)
lab=$(ls "$scratch"/deb/fishplate-lab_*.deb)
dpkg-deb --field "$lab" >"$scratch/control"
expect_line "$scratch/control" '^Package: fishplate-lab$'
expect_line "$scratch/control" '^Depends: fishplate \(= [0-9.]+\)'
dpkg-deb --contents "$lab" >"$scratch/contents"
expect_line "$scratch/contents" ' \./opt/fishplate/bin/fishplate-lab$'
dpkg-deb --field "$deb" >"$scratch/control"
expect_line "$scratch/control" '^Package: fishplate$'
expect_line "$scratch/control" "^Architecture: $(dpkg --print-architecture)$"
expect_line "$scratch/control" '^Depends: .*libc6'
expect_line "$scratch/control" '^Recommends: .*libibverbs1'
expect_line "$scratch/control" '^Maintainer: [^<>]+ <[^<> @]+@[^<> ]+>$'
dpkg-deb --contents "$deb" >"$scratch/contents"
for file in README.md docs/install.md docs/from-open-mpi.md examples/ring.c; do
    expect_line "$scratch/contents" " \./opt/fishplate/share/doc/fishplate/$file$"
done
expect_line "$scratch/contents" ' \./opt/fishplate/share/bash-completion/completions/fishplate$'
! grep fishplate-lab "$scratch/contents" || fail "the laboratory is in the package of the library"
expect_line "$scratch/contents" ' \./opt/fishplate/lib/libmpi_abi\.so\.1 -> libmpi_abi\.so\.1\.'
expect_line "$scratch/contents" ' \./opt/fishplate/share/modulefiles/fishplate/[0-9.]+$'
if awk '$6 !~ /^\.\/(opt\/(fishplate\/.*)?)?$/' "$scratch/contents" | grep .; then
    fail "the package has files outside /opt/fishplate"
fi

root=$scratch/root
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info"
    : >"$root/var/lib/dpkg/status"
    : >"$root/var/lib/dpkg/available"
    # dpkg runs the scripts of the package inside the root, which therefore needs a shell and update-alternatives.
    mkdir -p "$root/usr/bin" "$root/etc/alternatives" "$root/var/lib/dpkg/alternatives" "$root/var/log" "$root/usr/share/man/man1" \
        "$root/usr/share/bash-completion/completions"
    for directory in bin sbin lib lib64; do
        mkdir -p "$root/usr/$directory"
        [ ! -L /$directory ] || ln -s usr/$directory "$root/$directory"
    done
    for program in sh update-alternatives; do
        path=$(readlink -f "$(command -v $program)")
        mkdir -p "$root$(dirname "$path")"
        cp "$path" "$root/usr/bin/$program"
        ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -Ln "$library" "$root$library"
        done
    done
    dpkg --root="$root" --force-depends --install "$deb" >"$scratch/log" 2>&1 || {
        cat "$scratch/log"
        fail "dpkg --install"
    }
else
    dpkg-deb --extract "$deb" "$root"
fi
run_ring "$root/opt/fishplate"
if [ "$(id -u)" = 0 ]; then
    # The file of update-alternatives for the group: the main link, its priority, then the dependent programs and pages.
    alternatives=$root/var/lib/dpkg/alternatives/mpi
    expect_line "$alternatives" '^/opt/fishplate/bin/mpicc$'
    expect_line "$alternatives" '^30$'
    expect_line "$alternatives" '^/opt/fishplate/bin/mpicxx$'
    expect_line "$alternatives" '^/opt/fishplate/share/man/man1/mpicc\.1$'
    alternatives=$root/var/lib/dpkg/alternatives/mpirun
    expect_line "$alternatives" '^/opt/fishplate/bin/fishplate$'
    expect_line "$alternatives" '^/usr/share/bash-completion/completions/mpiexec$'
    [ "$(readlink "$root/etc/alternatives/mpirun")" = /opt/fishplate/bin/mpirun ] || fail "mpirun is no alternative"
    dpkg --root="$root" --purge fishplate >"$scratch/log" 2>&1 || {
        cat "$scratch/log"
        fail "dpkg --purge"
    }
    for link in etc/alternatives/mpi usr/bin/mpirun; do
        [ ! -L "$root/$link" ] || fail "$link was left behind"
    done
    [ ! -e "$root/opt/fishplate" ] || fail "left behind: $(find "$root/opt")"
fi
