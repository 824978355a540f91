#!/usr/bin/env bash
# one_machine_slurm.sh start FOLDER NODES CPUS [GPUS]   a real Slurm of several nodes on this machine, all of it under FOLDER
# one_machine_slurm.sh stop FOLDER                      ends its jobs and its processes, by their ids
#
# Root only. `start` prints what to put into the environment (SLURM_CONF=…). Each node has its own host name, /dev/shm and
# /etc/hosts, since MPI's shared-memory segments of two nodes would otherwise be taken for one. GPUs of a node are null
# devices: Slurm hands them out like any.
set -euo pipefail

action=$1
folder=$(realpath "$2")
nodes=${3:-2} cpus=${4:-2} gpus=${5:-0}
conf=$folder/slurm.conf
pids=$folder/pids

# A run of ports that nobody listens on: one for the controller, one for each node.
free_ports() {
  local first port attempt
  for attempt in $(seq 50); do
    first=$((20000 + (($$ + attempt * 37) % 400) * 30))
    for port in $(seq "$first" $((first + nodes))); do
      ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || continue 2
    done
    echo "$first"
    return
  done
  echo "no free ports" >&2
  return 1
}

configure() {
  local host port node gpu gres=
  host=$(hostname -s)
  port=$(free_ports)
  mkdir -p "$folder"/{state,log,run}
  chmod 755 "$folder" "$folder/run"
  (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
  echo "CgroupPlugin=autodetect" >"$folder/cgroup.conf"
  cat /etc/hosts >"$folder/hosts"
  for node in $(seq "$nodes"); do echo "127.0.0.1 n$node" >>"$folder/hosts"; done
  : >"$folder/gres.conf"
  if [ "$gpus" != 0 ]; then
    for gpu in $(seq 0 $((gpus - 1))); do mknod -m 666 "$folder/run/gpu$gpu" c 1 3; done
    echo "NodeName=n[1-$nodes] Name=gpu File=$folder/run/gpu[0-$((gpus - 1))]" >"$folder/gres.conf"
    gres=Gres=gpu:$gpus
  fi
  # TmpFS must differ between nodes on one machine (PMIx's sockets lie there); credentials that expire soon let a
  # restarted job begin soon; neither cgroups nor accounting are there.
  cat >"$conf" <<CONF
ClusterName=onemachine
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5,socket=$folder/run/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
TmpFS=$folder/tmp.%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
KillWait=2
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=$cpus RealMemory=2000 $gres State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=10 State=UP
CONF
}

# keep FILE: notes the process id that a daemon wrote there, once it has
keep() {
  local attempt
  for attempt in $(seq 200); do
    if [ -s "$1" ]; then
      cat "$1" >>"$pids"
      return
    fi
    sleep 0.05
  done
  echo "no process id in $1 after 10 s ($attempt looks)" >&2
  return 1
}

start() {
  local node attempt
  configure
  : >"$pids"
  export SLURM_CONF=$conf
  munged --force --key-file="$folder/munge.key" --socket="$folder/run/munge.socket" --pid-file="$folder/run/munged.pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/state/munged.seed" --num-threads=2
  keep "$folder/run/munged.pid"
  slurmctld -f "$conf" -c
  keep "$folder/run/slurmctld.pid"
  for node in $(seq "$nodes"); do
    mkdir -p "$folder/spool.n$node" "$folder/tmp.n$node"
    # shellcheck disable=SC2016  # expanded by the inner shell
    unshare --uts --mount bash -c 'hostname "$1" && mount -t tmpfs -o size=1g none /dev/shm &&
      mount --bind "$2/hosts" /etc/hosts && exec slurmd -f "$2/slurm.conf" -N "$1"' _ "n$node" "$folder"
    keep "$folder/run/slurmd.n$node.pid"
  done
  for attempt in $(seq 200); do
    if [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c idle)" = "$nodes" ]; then
      echo "SLURM_CONF=$conf"
      return
    fi
    sleep 0.1
  done
  echo "Slurm is not up after 20 s ($attempt looks)" >&2
  return 1
}

# The job shepherds of this Slurm: they carry its configuration in their environment.
shepherds() {
  local process
  for process in $(grep -lzxF "SLURM_CONF=$conf" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do
    [ "$(cat "/proc/$process/comm" 2>/dev/null)" != slurmstepd ] || echo "$process"
  done
}

stop() {
  [ -f "$pids" ] || return 0
  export SLURM_CONF=$conf
  local process attempt
  # jobs first, while there are daemons to end them
  timeout 5 scancel --user root 2>/dev/null || true
  for attempt in $(seq 60); do
    [ -n "$(timeout 5 squeue -h 2>/dev/null)$(shepherds)" ] || break
    sleep 0.1
  done
  for process in $(shepherds); do kill -KILL "$process" 2>/dev/null || true; done
  for process in $(tac "$pids"); do
    kill -TERM "$process" 2>/dev/null || continue
    for attempt in $(seq 60); do
      kill -0 "$process" 2>/dev/null || break
      sleep 0.05
    done
    [ "$attempt" != 60 ] || kill -KILL "$process" 2>/dev/null || true
  done
  rm -f "$pids"
}

case $action in
  start) start ;;
  stop) stop ;;
  *)
    echo "usage: one_machine_slurm.sh start|stop FOLDER [NODES CPUS GPUS]" >&2
    exit 2
    ;;
esac
