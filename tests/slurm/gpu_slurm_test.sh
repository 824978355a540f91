#!/usr/bin/env bash
# gpu_slurm_test.sh PROGRAM: slurm/single_node.sbatch and slurm/multi_node.sbatch, submitted to a real Slurm of two nodes
# with two GPUs each, start one rank a GPU, let every rank see all GPUs of its node, give the bits of a run alone and pass on
# a failure. The GPUs are null devices, so that the ranks mill on the host. Exit 77 (skipped) where there can be no Slurm.
set -euo pipefail

program=$(realpath "$1")
# shellcheck source=tests/slurm/support.sh
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"

"$program" generate data.h5:/X --shape 20011x17 --type float32 --chunk 512x17 --seed 7
"$program" cov data.h5:/X -o alone.h5 --block-rows 512 >alone.txt

# a rank that notes what it was given, then becomes the program
cat >rank.sh <<RANK
#!/usr/bin/env bash
echo "\$SLURM_NODEID \$SLURM_LOCALID \${CUDA_VISIBLE_DEVICES:-none} \$ROWMILL_THREADS" >>"\$RANKS_FILE"
exec "$program" "\$@"
RANK
chmod +x rank.sh
export ROWMILL=$work/rank.sh

# ranks_are NAME LINE...: these ranks and no others ran; then forgets them
ranks_are() {
  local name=$1 expected
  shift
  expected=$(printf '%s\n' "$@")
  [ "$(sort "$RANKS_FILE" 2>/dev/null)" = "$expected" ] || {
    printf 'expected (node, local rank, GPUs, threads):\n%s\nfound:\n%s\n' "$expected" "$(sort "$RANKS_FILE" 2>/dev/null)" >&2
    fail "$name started other ranks"
  }
  rm -f "$RANKS_FILE"
}

# What the Slurm of this machine may be too old for: a double of srun, with the options of a newer one, notes its arguments.
mkdir doubles
cat >doubles/srun <<'DOUBLE'
#!/usr/bin/env bash
[ "$1" != --help ] || exec echo "      --tres-bind=...         task to tres binding options"
echo "$*" >"$RANKS_FILE"
DOUBLE
printf '#!/bin/sh\necho "TaskPlugin              = task/affinity,task/cgroup"\n' >doubles/scontrol
chmod +x doubles/*
export RANKS_FILE=$work/ranks
for script in single_node multi_node; do
  nodes=1 expected="--ntasks=4 --cpus-per-task=4"
  [ $script = single_node ] || nodes=3 expected="--ntasks=12 --cpus-per-task=3"
  env PATH="$work/doubles:$PATH" SLURM_JOB_ID=1 SLURM_SUBMIT_DIR="$work" SLURM_GPUS_ON_NODE=4 SLURM_GPUS_PER_NODE=h200:4 \
    SLURM_JOB_NUM_NODES=$nodes SLURM_CPUS_ON_NODE=16 \
    SLURM_JOB_CPUS_PER_NODE="16(x2),12" SLURM_GPUS_PER_TASK=1 "$scripts/$script.sbatch" stats a.h5 || fail "$script with doubles"
  for word in --tres-bind=gres/gpu:none --cpu-bind=none --ntasks-per-node=4 $expected; do
    grep -q -e " *$word\( \|$\)" "$RANKS_FILE" || fail "$script: $word is not among the arguments of srun: $(cat "$RANKS_FILE")"
  done
done
rm -f "$RANKS_FILE"

start_slurm 2 4 2

submit job1.log --gpus 2 --cpus-per-gpu 2 "$scripts/single_node.sbatch" cov data.h5:/X -o single.h5 --block-rows 512
[ "$status" = 0 ] || fail "the job on one node ended with $status"
ranks_are single_node.sbatch "0 0 0,1 2" "0 1 0,1 2"
same_result 2 alone.h5 single.h5

submit job2.log --gpus 1 --cpus-per-gpu 3 "$scripts/single_node.sbatch" cov data.h5:/X -o one.h5 --block-rows 512
[ "$status" = 0 ] || fail "the job on one GPU ended with $status"
ranks_are "single_node.sbatch with one GPU" "0 0 0 3"
same_result 1 alone.h5 one.h5

submit job3.log --nodes 2 --gpus-per-node 2 "$scripts/multi_node.sbatch" cov data.h5:/X -o multi.h5 --block-rows 512
[ "$status" = 0 ] || fail "the job on two nodes ended with $status"
ranks_are multi_node.sbatch "0 0 0,1 2" "0 1 0,1 2" "1 0 0,1 2" "1 1 0,1 2"
same_result 4 alone.h5 multi.h5

# a failure is the job's failure, with rowmill's own code and words
for script in single_node multi_node; do
  options=(--nodes 2 --gpus-per-node 2)
  [ $script = multi_node ] || options=(--gpus 2 --cpus-per-gpu 2)
  submit job4-$script.log "${options[@]}" "$scripts/$script.sbatch" cov missing.h5:/X -o none.h5
  [ "$status" = 3 ] || fail "$script: a job without its input ended with $status, not 3"
  [ "$(grep -c '^rowmill.*missing.h5' job4-$script.log)" = 1 ] || fail "$script: a missing input is not named once"
  [ ! -e none.h5 ] || fail "$script: a job that failed left a result"
done
rm -f "$RANKS_FILE"

# the control: a GPU a task does hide the others here, so that the above would have shown it
# shellcheck disable=SC2016  # expanded in the job
printf '#!/bin/sh\nexec srun --ntasks 2 --gpus-per-task 1 --mpi=none "$ROWMILL" --version\n' >hiding.sbatch
submit job5.log --nodes 1 --gpus 2 --ntasks 2 hiding.sbatch
[ "$status" = 0 ] || fail "the control ended with $status"
! grep -q '0,1' "$RANKS_FILE" || fail "the control saw all GPUs: this Slurm does not bind, and the test shows nothing"
echo "one rank a GPU, each sees all GPUs of its node, on one node and on two; the bits are those of a run alone"
