# Several hosts on one machine: network namespaces with addresses and names of their own, reached by a script that
# plays the remote shell. Needs root and the right to make namespaces.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "ip (package iproute2) is not installed"
id=fp$$
bridge=$id-br

cleanup() {
    for i in 0 1 2; do
        ip netns del $id-n$i 2>/dev/null
    done
    ip link del $bridge 2>/dev/null
    rm -rf "$T"
}
trap cleanup EXIT
ip netns add $id-n0 2>/dev/null || skip "no network namespace can be made here"
ip link add $bridge type bridge 2>/dev/null || skip "no bridge can be made here"
net=10.77.$(($$ % 250))
ip addr add $net.1/24 dev $bridge && ip link set $bridge up || skip "the bridge cannot be set up"
for i in 0 1 2; do
    [ $i -eq 0 ] || ip netns add $id-n$i
    ip link add $id-v$i type veth peer name eth0 netns $id-n$i &&
        ip link set $id-v$i master $bridge up &&
        ip -n $id-n$i addr add $net.$((10 + i))/24 dev eth0 &&
        ip -n $id-n$i link set eth0 up && ip -n $id-n$i link set lo up || skip "a namespace cannot be set up"
done
cat >"$T/shell" <<'END'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare -u -- sh -c 'hostname "$0"; exec "$@"' "$host" "$@"
END
chmod +x "$T/shell"

run -launcher-exec "$T/shell" -hosts $id-n0:2,$id-n1:2,$id-n2:2,localhost:2 "$CLIENT" exchange
expect_rc 0
[ "$(grep -c 'exchange ok' "$T/out")" -eq 8 ] || fail "$last: not all ranks came through"
run -l -launcher-exec "$T/shell" -hosts $id-n0,$id-n1,$id-n2 hostname
expect_out "[0] $id-n0" "[1] $id-n1" "[2] $id-n2"
run -launcher-exec "$T/shell" -hosts $id-n0,$id-n1,$id-n2 "$CLIENT" crash 1
expect_rc 139
expect_err "Rank 1 on host $id-n1"
finish
