#!/usr/bin/env bash
# Runs a command where there are N hosts with a network between them: network and host name namespaces on a bridge, all
# in namespaces of the command's own, so that nothing is left of them or of its processes when it ends.
#   hosts.sh N COMMAND...    host1 ... hostN; "${on_hosts[@]}" of a script that sources `hosts` is its mpirun
# Ends with 77 and a line where the rights for it are missing.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

case ${1:-} in
  agent)  # agent HOST COMMAND...: what mpirun has in the place of ssh
    host=$2
    shift 2
    exec nsenter --net="/run/netns/$host" unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' "$host" "$@"
    ;;
  inside)  # inside N COMMAND...
    count=$2
    shift 2
    ip link set lo up
    mount -t tmpfs none /run
    ip link add bridge0 type bridge forward_delay 0
    ip addr add 10.9.0.254/24 dev bridge0
    ip link set bridge0 up
    cp /etc/hosts names
    : >hostfile
    for ((i = 1; i <= count; i++)); do
      ip netns add "host$i"
      ip link add "to_host$i" type veth peer name eth0 netns "host$i"
      ip link set "to_host$i" master bridge0 up
      ip -n "host$i" addr add "10.9.0.$i/24" dev eth0
      ip -n "host$i" link set lo up
      ip -n "host$i" link set eth0 up
      echo "10.9.0.$i host$i" >>names
      echo "host$i slots=1" >>hostfile
    done
    mount --bind names /etc/hosts
    cat >hosts <<END
on_hosts=(mpirun --allow-run-as-root --hostfile $PWD/hostfile --mca plm_rsh_agent "$here/hosts.sh agent"
  --mca btl tcp,self --mca oob_tcp_if_include 10.9.0.0/24 --mca btl_tcp_if_include 10.9.0.0/24 -n $count)
END
    exec "$@"
    ;;
esac

apart=(unshare --net --mount --uts --pid --fork --kill-child --mount-proc)
[ "$(id -u)" -eq 0 ] || apart+=(--user --map-root-user)
try='mount -t tmpfs none /run && ip netns add host0 && ip link add bridge0 type bridge && ip link add to_host0 type veth peer name eth0 netns host0'
if ! problem=$("${apart[@]}" sh -c "$try" 2>&1); then
  echo "skipped: no right to make network namespaces here: $problem"
  exit 77
fi
exec "${apart[@]}" "$here/hosts.sh" inside "$@"
