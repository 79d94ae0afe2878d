# Four hosts on this machine while the test runs: network namespaces $id-n0 to $id-n3 on a bridge, with their own addresses and names.
# The script $T/shell is their remote shell. Sourced after lib.sh.
# SPDX-License-Identifier: Apache-2.0
[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "ip (package iproute2) is not installed"
# The hosts are created and removed outside of the guard (lib.sh), so that no timeout ends the script too early.
id=${NETNS_ID:-fp$$}
net=${NETNS_NET:-10.77.$(($$ % 250))}
bridge=$id-br
hosts=$id-n0,$id-n1,$id-n2,$id-n3
[ -z "${NETNS_ID-}" ] || return 0

remove_hosts() {
    for i in 0 1 2 3; do
        ip netns del $id-n$i 2>/dev/null
        rm -rf "/etc/netns/$id-n$i"
    done
    ip link del $bridge 2>/dev/null
    rm -rf "$T"
}
trap remove_hosts EXIT
ip netns add $id-n0 2>/dev/null || skip "no network namespace can be made here"
ip link add $bridge type bridge 2>/dev/null || skip "no bridge can be made here"
ip addr add $net.1/24 dev $bridge && ip link set $bridge up || skip "the bridge cannot be set up"
names=$(echo "$net.1 $(hostname)"; for i in 0 1 2 3; do printf '%s %s-n%s\n' "$net.$((10 + i))" $id $i; done)
for i in 0 1 2 3; do
    [ $i -eq 0 ] || ip netns add $id-n$i
    ip link add $id-v$i type veth peer name eth0 netns $id-n$i &&
        ip link set $id-v$i master $bridge up &&
        ip -n $id-n$i addr add $net.$((10 + i))/24 dev eth0 &&
        ip -n $id-n$i link set eth0 up && ip -n $id-n$i link set lo up || skip "a namespace cannot be set up"
    mkdir -p "/etc/netns/$id-n$i"
    printf '127.0.0.1 localhost\n%s\n' "$names" >"/etc/netns/$id-n$i/hosts"
done
# Skips the options for ssh; like a real remote shell, it passes the command to a shell.
cat >"$T/shell" <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    shift
done
host=$1
shift
exec ip netns exec "$host" unshare -u -- sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
END
chmod +x "$T/shell"
export NETNS_ID=$id NETNS_NET=$net
