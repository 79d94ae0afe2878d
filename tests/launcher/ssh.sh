# Hosts reached by ssh: an sshd of the test on a free port, which answers for several names.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] && command -v ssh >/dev/null && command -v ssh-keygen >/dev/null ||
    skip "ssh or sshd (packages openssh-client, openssh-server) is not installed"
command -v python3 >/dev/null || skip "python3, to find a free port, is not installed"
[ "$(id -u)" -ne 0 ] || [ -d /run/sshd ] || mkdir /run/sshd 2>/dev/null || skip "sshd needs /run/sshd"
run_guarded
copy_client
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
ssh-keygen -q -t ed25519 -N '' -f "$T/hostkey" && ssh-keygen -q -t ed25519 -N '' -f "$T/key" ||
    skip "ssh-keygen does not work"
cp "$T/key.pub" "$T/authorized"
cat >"$T/sshd_config" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $T/hostkey
AuthorizedKeysFile $T/authorized
PidFile $T/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv SHLVL=2
END
# With SHLVL=2 bash does not read the user's .bashrc, which may wait for a lock (pyenv rehash: 60 seconds).
cat >"$T/ssh_config" <<END
Host one two three four
    HostName 127.0.0.1
    Port $port
    IdentityFile $T/key
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    BatchMode yes
END
"$sshd" -f "$T/sshd_config" -E "$T/sshd.log" || skip "sshd does not start: $(cat "$T/sshd.log")"
tries=0
until ssh -F "$T/ssh_config" one true 2>"$T/err"; do
    tries=$((tries + 1))
    [ $tries -lt 25 ] || skip "sshd does not let us in: $(cat "$T/err")"
    sleep 0.2
done

run_on_four_hosts() {
    run_mpiexec -launcher-exec "ssh -F $T/ssh_config" -hosts one:2,two:2,three:2,four:2 -timeout 60 "$@"
}
run_on_four_hosts "$CLIENT" exchange
expect_rc 0
[ "$(grep -c 'exchange ok' "$T/out")" -eq 8 ] || fail "$last: not all ranks came through"
run_on_four_hosts -fanout 2 -l -genv A "two  words, 'quoted'" sh -c 'echo $FISHPLATE_HOST "$A"' # also from host to host
expect_out "[0] one two  words, 'quoted'" "[1] one two  words, 'quoted'" "[2] two two  words, 'quoted'" \
    "[3] two two  words, 'quoted'" "[4] three two  words, 'quoted'" "[5] three two  words, 'quoted'" \
    "[6] four two  words, 'quoted'" "[7] four two  words, 'quoted'"
run_on_four_hosts "$CLIENT" crash 5
expect_rc 139
expect_err "Rank 5 on host three"
run_mpiexec -launcher-exec "ssh -F $T/ssh_config -p 1" -hosts one,two sleep 1000
expect_rc 1
expect_err "was lost: its agent could not be started"

# The connection to a host breaks: its ranks and the job end.
mkfifo "$T/up"
exec 6<>"$T/up"
"$MPIEXEC" -launcher-exec "ssh -F $T/ssh_config" -hosts one,two "$CLIENT" stay "$T/up" >"$T/out" 2>"$T/err" 6>&- &
job=$!
read -r pid1 <&6
read -r pid2 <&6
last="killing the agent of a rank behind ssh"
kill -KILL "$(ps -o ppid= -p "$pid1" | tr -d ' ')"
rc=0
wait $job || rc=$?
expect_rc 1
expect_gone "$pid1"
expect_gone "$pid2"
expect_no_client
finish_test
