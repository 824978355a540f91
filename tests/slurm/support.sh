# For the tests of this folder, which source it: sets $work (current folder, removed at the end) and $scripts.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034  # of the tests
scripts=$(realpath "$here/../../slurm")

skip() {
  echo "skipped: $1"
  exit 77
}
fail() {
  echo "FAILED: $1" >&2
  cat job*.log >&2 2>/dev/null || true
  tail -n 20 slurm/log/*.log >&2 2>/dev/null || true
  exit 1
}

[ "$(id -u)" = 0 ] || skip "only root can start a Slurm"
for command in munged slurmctld slurmd sbatch srun; do
  command -v $command >/dev/null || skip "$command is not installed"
done
unshare --uts --mount true 2>/dev/null || skip "nodes of their own cannot be made here (unshare)"
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "python3-h5py is not installed"

# short, since paths of sockets are limited to 107 bytes
work=$(mktemp -d /tmp/rowmill-slurm.XXXXXX)
finish() {
  "$here/one_machine_slurm.sh" stop "$work/slurm"
  rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
mkdir slurm

# start_slurm NODES CPUS [GPUS]
start_slurm() {
  "$here/one_machine_slurm.sh" start "$work/slurm" "$@" >environment || fail "Slurm does not start"
  # shellcheck disable=SC2163  # NAME=VALUE is in the file
  export "$(cat environment)"
  srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no PMIx"
  # the variables of ctest's own environment are for mpirun on one machine
  unset "${!OMPI_@}"
}

# submit LOG OPTIONS and SCRIPT of sbatch, ARGUMENTS: runs the job to its end; its exit code is then in $status
submit() {
  local log=$1 job state attempt
  shift
  job=$(sbatch --parsable --time 2 --output "$log" "$@") || fail "sbatch refuses $*"
  for attempt in $(seq 400); do
    state=$(scontrol --oneliner show job "$job")
    case $state in
      *JobState=PENDING* | *JobState=RUNNING* | *JobState=COMPLETING* | *JobState=CONFIGURING*) sleep 0.2 ;;
      *)
        # shellcheck disable=SC2001,SC2034  # three parts are cut away at once; of the tests
        status=$(sed 's/.* ExitCode=\([0-9]*\):\([0-9]*\).*/\1/' <<<"$state")
        return
        ;;
    esac
  done
  fail "job $job is still going after $attempt looks: $state"
}

# same_result RANKS A.h5 B.h5: B came from that many ranks and has A's bits
same_result() {
  /usr/bin/python3 - "$@" <<'PYTHON' || fail "the result $3 differs from that of a run alone"
import sys
import h5py
ranks, first, second = sys.argv[1:]
with h5py.File(first, "r") as alone, h5py.File(second, "r") as slurm:
    assert int(slurm.attrs["world_size"]) == int(ranks), slurm.attrs["world_size"]
    assert sorted(alone) == sorted(slurm) and "covariance" in alone, (list(alone), list(slurm))
    for name in alone:
        a, b = alone[name][()], slurm[name][()]
        assert a.shape == b.shape and a.tobytes() == b.tobytes(), name
PYTHON
}
