#!/usr/bin/env bash
# slurm_test.sh PROGRAM: slurm/cpu.sbatch, submitted to a real Slurm of two nodes, gives the bits of a run alone, and passes
# on a failure. Exit 77 (skipped) where there can be no Slurm.
set -euo pipefail

program=$(realpath "$1")
# shellcheck source=tests/slurm/support.sh
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"

"$program" generate data.h5:/X --shape 20011x17 --type float32 --chunk 512x17 --seed 7
"$program" cov data.h5:/X -o alone.h5 --block-rows 512 >alone.txt

start_slurm 2 2
export ROWMILL=$program

submit job1.log --nodes 2 "$scripts/cpu.sbatch" cov data.h5:/X -o slurm.h5 --block-rows 512
[ "$status" = 0 ] || fail "the job ended with $status"
[ -f slurm.h5 ] || fail "the job ended well without a result"
same_result 2 alone.h5 slurm.h5

# a failure is the job's failure, with rowmill's own code and words
submit job2.log --nodes 2 "$scripts/cpu.sbatch" cov missing.h5:/X -o none.h5
[ "$status" = 3 ] || fail "a job without its input ended with $status, not 3"
[ "$(grep -c '^rowmill.*missing.h5' job2.log)" = 1 ] || fail "a missing input is not named once"
[ ! -e none.h5 ] || fail "a job that failed left a result"
echo "slurm/cpu.sbatch on two nodes gives the bits of a run alone"
