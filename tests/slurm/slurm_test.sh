#!/usr/bin/env bash
# slurm_test.sh PROGRAM: slurm/cpu.sbatch, submitted to a real Slurm of two nodes, gives the bits of a run alone, and passes
# on a failure. Exit 77 (skipped) where there can be no Slurm.
set -euo pipefail

program=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
script=$(realpath "$here/../../slurm/cpu.sbatch")

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
cd "$work"
mkdir slurm

"$program" generate data.h5:/X --shape 20011x17 --type float32 --chunk 512x17 --seed 7
"$program" cov data.h5:/X -o alone.h5 --block-rows 512 >alone.txt

"$here/one_machine_slurm.sh" start "$work/slurm" 2 2 >environment || fail "Slurm does not start"
export "$(cat environment)"
srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no PMIx"

# the variables of ctest's own environment are for mpirun on one machine
unset "${!OMPI_@}"
export ROWMILL=$program

# submit LOG ARGUMENTS of rowmill: runs the job on two nodes to its end; its exit code is then in $status
submit() {
  local log=$1 job state attempt
  shift
  job=$(sbatch --parsable --time 2 --nodes 2 --output "$log" "$script" "$@")
  for attempt in $(seq 400); do
    state=$(scontrol --oneliner show job "$job")
    case $state in
      *JobState=PENDING* | *JobState=RUNNING* | *JobState=COMPLETING* | *JobState=CONFIGURING*) sleep 0.2 ;;
      *)
        # shellcheck disable=SC2001  # three parts are cut away at once
        status=$(sed 's/.* ExitCode=\([0-9]*\):\([0-9]*\).*/\1/' <<<"$state")
        return
        ;;
    esac
  done
  fail "job $job is still going after $attempt looks: $state"
}

submit job1.log cov data.h5:/X -o slurm.h5 --block-rows 512
[ "$status" = 0 ] || fail "the job ended with $status"
[ -f slurm.h5 ] || fail "the job ended well without a result"
/usr/bin/python3 - <<'PYTHON' || fail "the result differs from that of a run alone"
import h5py
with h5py.File("alone.h5", "r") as alone, h5py.File("slurm.h5", "r") as slurm:
    assert int(slurm.attrs["world_size"]) == 2, slurm.attrs["world_size"]
    assert sorted(alone) == sorted(slurm) and "covariance" in alone, (list(alone), list(slurm))
    for name in alone:
        a, b = alone[name][()], slurm[name][()]
        assert a.shape == b.shape and a.tobytes() == b.tobytes(), name
PYTHON

# a failure is the job's failure, with rowmill's own code and words
submit job2.log cov missing.h5:/X -o none.h5
[ "$status" = 3 ] || fail "a job without its input ended with $status, not 3"
[ "$(grep -c '^rowmill.*missing.h5' job2.log)" = 1 ] || fail "a missing input is not named once"
[ ! -e none.h5 ] || fail "a job that failed left a result"
echo "slurm/cpu.sbatch on two nodes gives the bits of a run alone"
