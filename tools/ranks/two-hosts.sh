#!/bin/sh
# Two network namespaces of this machine as hosts, and a program of ranks on both, over TCP. As root, with Open MPI and iproute2:
#   two-hosts.sh 2 node train.js
set -eu
ranks=$1
shift
folder=$(mktemp -d)
clean() {
  for host in opt1 opt2; do ip netns del "$host" 2>/dev/null || true; done
  rm -r "$folder"
}
trap clean EXIT
for host in opt1 opt2; do ip netns add "$host"; done
ip link add optv1 netns opt1 type veth peer name optv2 netns opt2
for number in 1 2; do
  ip -n "opt$number" addr add "10.9.0.$number/24" dev "optv$number"
  ip -n "opt$number" link set "optv$number" up
  ip -n "opt$number" link set lo up
done
# mpirun calls it as it calls ssh: the host, then the command.
cat >"$folder/agent" <<'AGENT'
#!/bin/sh
shift
exec ip netns exec opt2 unshare -u sh -c "hostname opt2 && $*"
AGENT
chmod +x "$folder/agent"
half=$(((ranks + 1) / 2))
printf '10.9.0.1 slots=%s\n10.9.0.2 slots=%s\n' "$half" "$half" >"$folder/hosts"
network=10.9.0.0/24
ip netns exec opt1 unshare -u sh -c 'hostname opt1 && exec "$@"' sh \
  mpirun --allow-run-as-root --hostfile "$folder/hosts" --map-by node -x OPT_NUM_THREADS \
  --mca plm_rsh_agent "$folder/agent" --mca btl tcp,self \
  --mca btl_tcp_if_include "$network" --mca oob_tcp_if_include "$network" -n "$ranks" "$@"
