#!/usr/bin/env bash
# gpu_check_test.sh: scripts/gpu_check.sh skips every step with its reason, exit 77, without a GPU; and where a step fails it
# says so in its table, goes on to the end, and exits 1. In a copy, with doubles of nvidia-smi: nothing is built, no GPU used.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../scripts" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/rowmill-gpu-check-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir scripts bench doubles
cp "$scripts/gpu_check.sh" scripts/
export PATH=$work/doubles:$PATH

fail() {
  echo "FAILED: $1" >&2
  cat out >&2
  exit 1
}
# double NAME LINE...
double() {
  local name=$1
  shift
  printf '%s\n' '#!/bin/sh' "$@" >"doubles/$name"
  chmod +x "doubles/$name"
}
# check EXIT ARGUMENTS: runs it
check() {
  local expected=$1 status=0
  shift
  scripts/gpu_check.sh "$@" >out 2>&1 || status=$?
  [ $status = "$expected" ] || fail "exit $status, not $expected"
}
# outcome STEP OUTCOME WORDS
outcome() { grep -qE "^$1 +[0-9-]+ +$2 +$3" out || fail "no line for '$1': $2 $3"; }

# every step of the script, by its own functions
steps=$(sed -n 's/^step_\([a-z_]*\)() .*/\1/p' scripts/gpu_check.sh)
[ "$(wc -w <<<"$steps")" -ge 10 ] || fail "the script has no steps"

double nvidia-smi 'echo "NVIDIA-SMI has failed"; exit 9'
check 77
for step in $steps; do outcome "$step" skipped 'no GPU \(nvidia-smi: NVIDIA-SMI has failed\)'; done
grep -q '^GPU     no GPU' out || fail "the machine's line does not say that there is no GPU"

# a GPU, but a bundle that is none: what depends on it is skipped
double nvidia-smi 'echo "NVIDIA H200, 580.00, 143771 MiB, 9.0"'
echo nonsense >bundle.tar.xz
check 1 bundle.tar.xz
outcome bundle FAILED 'cannot be unpacked'
for step in $steps; do [ "$step" = bundle ] || outcome "$step" skipped 'the bundle is not unpacked'; done

# a build that fails, and one after which every test of a GPU would have to be built
double cmake 'exit 1'
check 1
outcome configure FAILED 'cmake --preset gpu failed'
outcome racecheck skipped 'not configured'
double cmake 'echo "$@"'
double ninja 'exit 1'
double ctest 'exit 0'
check 1
outcome configure ok 'for compute capability 90'
outcome build FAILED 'does not build'
outcome tests skipped 'not built'
grep -q -e '-DROWMILL_CUDA_ARCHITECTURES=90-real' build/gpu-check/steps/configure.log || fail "built for another GPU"

# a module that does not build
double ninja 'case "$*" in *rowmill_cuda*) exit 1 ;; esac'
mkdir -p build/gpu/bin
printf '#!/bin/sh\nexit 4\n' >build/gpu/bin/rowmill
chmod +x build/gpu/bin/rowmill
check 1 --bytes 1e6
outcome build ok rowmill
outcome build_gpu FAILED 'does not build'
outcome tests skipped 'the CUDA module is not built'

# a program that does not work: each step fails by itself, and the last one is reached
double ninja 'exit 0'
for program in gpu_bench pread_sum; do cp doubles/cmake build/gpu/bin/$program; done
double compute-sanitizer 'exit 99'
check 1 --bytes 1e6
for step in tests agrees_with_host modes nccl_one_rank two_ranks_one_gpu generate memcheck racecheck; do
  outcome "$step" FAILED ''
done
echo "gpu_check.sh says why it skips, and goes on after a failure"
