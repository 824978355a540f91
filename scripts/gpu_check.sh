#!/usr/bin/env bash
# gpu_check.sh [--build-anyway] [--bytes N] [BUNDLE.tar.xz]: one command, at most eight minutes, that builds rowmill on a
# machine with an NVIDIA GPU, tests it there and measures it: a table last, one line a step. BUNDLE (of gpu_bundle.sh) holds
# the packages to build from where none can be installed. Without a GPU every step is skipped, with the reason;
# --build-anyway builds all the same. --bytes: size of the two files that are milled (8e9, less where memory is short).
# Logs and figures: build/gpu-check. Exit 0: all well, 1: a step failed, 77: nothing was checked.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GPU_CHECK_LOGS=$PWD/build/gpu-check GPU_CHECK_BUILD=$PWD/build/gpu
logs=$GPU_CHECK_LOGS build=$GPU_CHECK_BUILD
columns=1024

# --- steps: each prints what it does, and one line for the table into $figure; 0 well, 77 skipped, else failed -----------

figure() { echo "$*" >"$logs/figure"; }
# fail WORDS: the step's line in the table
fail() {
  figure "$*"
  exit 1
}
rowmill() { "$build/bin/rowmill" "$@"; }
# value NAME: a figure of gpu_bench
value() { awk -v name="$1" '$1 == name { print $2 }' "$logs/rates.log" 2>/dev/null; }

step_bundle() {
  [ -n "$GPU_CHECK_BUNDLE" ] || { figure "none given: with what is installed"; exit 77; }
  rm -rf "$build-bundle"
  mkdir -p "$build-bundle"
  # a bare machine may lack xz
  tar -C "$build-bundle" -xf "$GPU_CHECK_BUNDLE" ||
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$GPU_CHECK_BUNDLE" "$build-bundle" ||
    fail "cannot be unpacked"
  [ -f "$build-bundle/rowmill-bundle/env.sh" ] || fail "holds no env.sh"
  figure "$(wc -l <"$build-bundle/rowmill-bundle/packages") packages"
}

step_configure() {
  local architecture=$GPU_CHECK_ARCHITECTURE options=(-DROWMILL_BENCH=ON -DROWMILL_WERROR=OFF)
  options+=("-DROWMILL_CUDA_ARCHITECTURES=$architecture-real")
  [ ! -f "$GPU_CHECK_NCCL/include/nccl.h" ] || options+=("-DNCCL_INCLUDE_DIR=$GPU_CHECK_NCCL/include")
  cmake --preset gpu "${options[@]}" || fail "cmake --preset gpu failed"
  figure "for compute capability $architecture"
}

step_build() {
  ninja -C "$build" rowmill rowmill-h5-helper || fail "does not build"
  figure "rowmill"
}

step_build_gpu() {
  local targets wanted
  # the programs behind the tests of a GPU, as far as they are built: tests are named PROGRAM or PROGRAM.NUMBERranks
  wanted=$(ctest --test-dir "$build" -N -L '^gpu$' | sed -n 's/^ *Test *#[0-9]*: \([^. ]*\).*/\1/p' | sort -u)
  targets=$(ninja -C "$build" -t targets all | sed -n 's/^\([^/:]*\): phony$/\1/p' | grep -xF "${wanted:-none}" || true)
  # shellcheck disable=SC2086  # one argument a name
  ninja -C "$build" rowmill_cuda gpu_bench pread_sum $targets || fail "does not build"
  figure "the CUDA module, gpu_bench, $(wc -w <<<"$targets") test programs"
}

# generate NAME TYPE BYTES_OF_AN_ELEMENT: in the background, beside what is built and tested
generate() {
  local start=$EPOCHREALTIME
  rowmill generate "$GPU_CHECK_DATA/$1.h5:/X" --shape "$((GPU_CHECK_BYTES / columns / $3))x$columns" --type "$2" --seed 1 \
    --mean-offset 20 --overwrite >"$logs/generate-$1.log" 2>&1 &&
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f s\n", b - a }' >"$logs/generated-$1"
}

step_generate() {
  local name tries
  for name in f32 u8; do
    for tries in $(seq 900); do
      [ ! -f "$logs/generated-$name" ] || break
      kill -0 "$GPU_CHECK_GENERATOR" 2>/dev/null || [ -f "$logs/generated-$name" ] || fail "generating $name failed"
      sleep 0.1
    done
    [ -f "$logs/generated-$name" ] || fail "generating $name is not done after $tries looks"
  done
  figure "2 × $((GPU_CHECK_BYTES / 1000000)) MB in $GPU_CHECK_DATA: float32 in $(cat "$logs/generated-f32")," \
    "uint8 in $(cat "$logs/generated-u8"), beside the steps above"
}

step_tests() {
  local report=$logs/tests.xml tests good
  rm -f "$report"
  ctest --test-dir "$build" -L '^gpu$' --no-tests=error --output-on-failure --timeout 60 --output-junit "$report" || true
  [ -f "$report" ] || fail "ctest ran no test of a GPU"
  tests=$(grep -cE '^[[:space:]]*<testcase ' "$report" || true)
  good=$(grep -cE '^[[:space:]]*<testcase .*status="run"' "$report" || true)
  figure "$good of $tests test programs passed"
  # with a GPU at hand none may be skipped
  [ "$tests" -gt 0 ] && [ "$good" = "$tests" ]
}

tiny() { [ -f "$logs/tiny.h5" ] || rowmill generate "$logs/tiny.h5:/X" --shape 3001x37 --seed 3 --mean-offset 100; }

# mill NAME ARGUMENTS: on the GPU, into $logs/NAME.json
mill() {
  local name=$1
  shift
  rowmill "$@" --backend cuda --json >"$logs/$name.json" || fail "rowmill $* --backend cuda ended with $?"
}

# compare TOLERANCE A.json B.json: prints the greatest difference of the results, of the scale of their rows and columns;
# with tolerance 0 they must be the same in every bit
compare() {
  python3 - "$1" "$logs/$2.json" "$logs/$3.json" <<'PYTHON'
import json, sys
tolerance, first, second = float(sys.argv[1]), json.load(open(sys.argv[2]))["result"], json.load(open(sys.argv[3]))["result"]
assert sorted(first) == sorted(second) and first, "other data sets"
worst = 0.0
for name, a in first.items():
    b = second[name]
    assert not isinstance(a, dict), name + " is too large for --json"
    if a and isinstance(a[0], list):
        scale = [max(abs(a[i][i]), 1e-300) ** 0.5 for i in range(len(a))]
        pairs = ((x, y, scale[i] * scale[j]) for i, row in enumerate(a) for j, (x, y) in enumerate(zip(row, b[i])))
    else:
        pairs = ((x, y, max(abs(x), 1e-300)) for x, y in zip(a, b))
    for x, y, s in pairs:
        worst = max(worst, abs(x - y) / s)
print("%.2g" % worst)
sys.exit(worst > tolerance)
PYTHON
}

step_agrees_with_host() {
  local job worst words=
  tiny
  for job in stats gram cov; do
    rowmill $job "$logs/tiny.h5:/X" --backend host --json >"$logs/host-$job.json" || fail "$job on the host failed"
    mill "cuda-$job" $job "$logs/tiny.h5:/X"
    # stats is fp64 throughout; the products keep to the default --rtol on either side
    worst=$(compare "$([ $job = stats ] && echo 1e-12 || echo 6e-5)" host-$job cuda-$job) ||
      fail "$job differs from the host's by ${worst:-?}"
    words="$words $job $worst"
  done
  figure "differences, relative:$words"
}

step_modes() {
  local mode worst words=
  tiny
  mill mode-fp64 gram "$logs/tiny.h5:/X" --precision fp64
  for mode in fp32 tf32 bf16 fp16 bf16x3; do
    mill mode-$mode gram "$logs/tiny.h5:/X" --precision $mode --rtol 0.02
    worst=$(compare 0.02 mode-fp64 mode-$mode) || fail "$mode differs from fp64 by ${worst:-?}"
    words="$words $mode $worst"
  done
  [ -f "$logs/bytes.h5" ] || rowmill generate "$logs/bytes.h5:/X" --shape 3001x37 --type uint8 --seed 3 --mean-offset 100
  mill bytes-fp64 gram "$logs/bytes.h5:/X" --precision fp64
  mill bytes-int8 gram "$logs/bytes.h5:/X" --precision int8
  compare 0 bytes-fp64 bytes-int8 || fail "int8 is not exact on uint8"
  figure "gram against fp64:$words; int8 on uint8 exact"
}

step_nccl_one_rank() {
  tiny
  mill alone cov "$logs/tiny.h5:/X"
  mill nccl cov "$logs/tiny.h5:/X" --comm nccl
  compare 0 alone nccl || fail "other bits than without NCCL"
  figure "the same bits as without NCCL"
}

two_ranks() { mpirun -q --oversubscribe -n 2 "$build/bin/rowmill" cov "$logs/tiny.h5:/X" --backend cuda --block-rows 256 "$@"; }

step_two_ranks_one_gpu() {
  local status=0
  tiny
  mill one-rank cov "$logs/tiny.h5:/X" --block-rows 256
  two_ranks --json >"$logs/two-ranks.json" || fail "two ranks ended with $?"
  compare 0 one-rank two-ranks || fail "other bits than with one rank"
  python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["warnings"])' "$logs/two-ranks.json" ||
    fail "no warning that both share a GPU"
  two_ranks --comm nccl >/dev/null || status=$?
  [ $status = 4 ] || fail "--comm nccl for two ranks on one GPU ended with $status, not 4"
  figure "host-staged MPI with a warning, the same bits as one rank; --comm nccl refused"
}

# sanitize TOOL: the three jobs on little data
sanitize() {
  local tool=$1 program job
  program=$(PATH=$PATH:$(dirname "$CUDACXX"):$(dirname "$CUDACXX")/../compute-sanitizer command -v compute-sanitizer || true)
  [ -n "$program" ] || { figure "compute-sanitizer is not installed"; exit 77; }
  tiny
  for job in "stats" "cov" "gram --precision bf16 --rtol 0.02"; do
    # shellcheck disable=SC2086  # words
    "$program" --tool "$tool" --error-exitcode 99 "$build/bin/rowmill" $job "$logs/tiny.h5:/X" --backend cuda ||
      fail "$tool: $job ended with $?"
  done
  figure "stats, cov and gram in bf16 are clean"
}
step_memcheck() { sanitize memcheck; }
step_racecheck() { sanitize racecheck; }

step_rates() {
  "$build/bin/gpu_bench" --json "$logs/rates.json" >"$logs/rates.log" || fail "gpu_bench ended with $?: $(grep -m 1 failed "$logs/rates.log")"
  cat "$logs/rates.log"
  figure "h2d $(value h2d_64MiB) GB/s, device copy $(value device_copy_read_and_written) GB/s, bf16 GEMM" \
    "$(value gemm_bf16_d4096) and our gram $(value product_bf16_f32_d4096) TF/s, DSYRK $(value dsyrk_d4096) TF/s"
}

# whole JOB NAME: median of three runs from memory; overlap is the slowest stage alone / total, the stages being
#   disk     bytes / the rate at which threads that only pread and add read the float32 file (pread_sum)
#   bus      bytes / the rate of pinned copies of 64 MiB to the device (gpu_bench)
#   compute  bytes / the rate of the job's work on a block that lies on the device (gpu_bench)
whole() {
  local job=$1 name=$2 run mode rate
  : >"$logs/seconds"
  for run in 1 2 3; do
    mill "whole-$job-$name" "$job" "$GPU_CHECK_DATA/$name.h5:/X" -o "$GPU_CHECK_DATA/$job-$name.h5" --overwrite
    sed -n 's/^  "seconds": \([0-9.e+-]*\),*$/\1/p' "$logs/whole-$job-$name.json" >>"$logs/seconds"
  done
  [ "$(wc -l <"$logs/seconds")" = 3 ] || fail "no seconds in the JSON of run $run"
  mode=$(sed -n 's/^  "precision": "\([a-z0-9]*\)",*$/\1/p' "$logs/whole-$job-$name.json")
  rate=$(value "$([ "$job" = stats ] && echo "moments_${name}_d$columns" || echo "gram_block_${mode}_${name}_d$columns")")
  sort -g "$logs/seconds" | awk -v name="$job of $name${mode:+ in $mode}" -v bytes="$GPU_CHECK_BYTES" \
    -v disk="$(sed -n 's/.* \([0-9.]*\) GB\/s.*/\1/p' "$logs/pread.log")" -v bus="$(value h2d_64MiB)" -v compute="$rate" '
      function stage(rate) { return rate > 0 ? bytes / rate / 1e9 : 0 }
      NR == 2 {
        most = stage(disk); if (stage(bus) > most) most = stage(bus); if (stage(compute) > most) most = stage(compute)
        printf "%s: %.3f s, %.1f GB/s; alone: disk %.3f, bus %.3f, compute %.3f s; overlap %.2f\n", name, $1, bytes / $1 / 1e9,
          stage(disk), stage(bus), stage(compute), most / $1
      }' | tee -a "$logs/whole.txt"
}

step_whole_program() {
  local threads name job
  threads=$(nproc)
  for name in f32 u8; do [ -f "$logs/generated-$name" ] || { figure "there are no files to mill"; exit 77; }; done
  [ -n "$(value h2d_64MiB)" ] || { figure "needs the rates of gpu_bench"; exit 77; }
  "$build/bin/pread_sum" "$GPU_CHECK_DATA/f32.h5" $((threads < 16 ? threads : 16)) | tee "$logs/pread.log"
  for name in f32 u8; do
    for job in stats gram; do whole $job $name; done
  done
  figure "$(sed 's/;.*; /, /' "$logs/whole.txt" | paste -s -d ';' | sed 's/;/; /g')"
}

step_peers() {
  local name job result results status=0
  for name in f32 u8; do
    [ -f "$logs/generated-$name" ] || { figure "there are no files to mill"; exit 77; }
    results=()
    for job in gram stats; do
      result=$GPU_CHECK_DATA/$job-$name.h5
      [ ! -f "$result" ] || results+=("--$job" "$result")
    done
    # with the libraries of the system, not those of the bundle
    env LD_LIBRARY_PATH="$GPU_CHECK_LIBRARY_PATH" python3 bench/gpu_peers.py "$GPU_CHECK_DATA/$name.h5" \
      "${results[@]}" --json "$logs/peers-$name.json" \
      >"$logs/peers-$name.txt" || status=$?
    sed "s/^/$name  /" "$logs/peers-$name.txt" | tee -a "$logs/peers.txt"
    [ $status = 0 ] || { figure "$(tail -n 1 "$logs/peers-$name.txt")"; exit $status; }
  done
  figure "$(awk '{ printf "%s%s %s %s %s s", NR == 1 ? "" : "; ", $2, $1, $3 ($3 == "rowmill" ? "" : " " $4), $3 == "rowmill" ? $4 : $5 }' "$logs/peers.txt")"
}

if [ "${1:-}" = --step ]; then
  "step_$2"
  exit
fi

# --- the run -------------------------------------------------------------------------------------------------------------

started=$SECONDS longest=470
build_anyway=0 bytes=8000000000 bundle=
while [ $# -gt 0 ]; do
  case $1 in
    --build-anyway) build_anyway=1 ;;
    --bytes)
      bytes=$(printf '%.0f' "$2")
      shift
      ;;
    -*)
      echo "usage: gpu_check.sh [--build-anyway] [--bytes N] [BUNDLE.tar.xz]" >&2
      exit 2
      ;;
    *) bundle=$(realpath -m "$1") ;;
  esac
  shift
done
rm -rf "$logs"
mkdir -p "$logs/steps"

# where images with GPUs keep their programs, found or not
PATH=$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin
# What every step but the first ones needs; empty if it is there.
no_gpu='' gpu=''
if ! command -v nvidia-smi >/dev/null; then
  no_gpu="no GPU (nvidia-smi is not here)"
elif ! gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader 2>&1) || [ -z "$gpu" ]; then
  no_gpu="no GPU (nvidia-smi: $(head -n 1 <<<"$gpu"))"
fi
capability=
[ -n "$no_gpu" ] || capability=$(head -n 1 <<<"$gpu" | sed 's/.*, *//; s/\.//')
[[ $capability =~ ^[0-9]+$ ]] || capability=90

# python's wheels hold NCCL where the system does not
nccl=$(python3 -c 'import nvidia.nccl as m; print(list(m.__path__)[0])' 2>/dev/null || true)
cuda_compiler=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
# The files lie in memory, and as much again is for the rest: never more than a third of what is free for both.
free=$(awk '/^MemAvailable:/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
[ $((bytes * 6)) -le "$free" ] || bytes=$((free / 6))
# room FOLDER: for both files and results?
room() { [ -w "$1" ] && [ "$(df --output=avail -B 1 "$1" | tail -n 1)" -ge $((bytes * 5 / 2)) ]; }
data=/dev/shm
room $data || data=${TMPDIR:-/tmp}
room "$data" || bytes=$(($(df --output=avail -B 1 "$data" | tail -n 1) / 3))
data=$(mktemp -d "$data/rowmill-gpu-check.XXXXXX")
generator=
finish() {
  [ -z "$generator" ] || kill -- "-$generator" 2>/dev/null || true
  rm -rf "$data"
}
trap finish EXIT

export GPU_CHECK_BUNDLE=$bundle GPU_CHECK_ARCHITECTURE=$capability GPU_CHECK_NCCL=$nccl GPU_CHECK_DATA=$data
export GPU_CHECK_BYTES=$bytes GPU_CHECK_GENERATOR='' GPU_CHECK_LIBRARY_PATH=${LD_LIBRARY_PATH:-} CUDACXX=$cuda_compiler
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1

commit=$(git describe --always --dirty --abbrev=12 2>/dev/null || echo "${ROWMILL_COMMIT:-unknown; set ROWMILL_COMMIT}")
echo "date    $(date -u +%Y-%m-%dT%H:%M:%SZ)"
echo "commit  $commit"
echo "machine $(nproc) processors, $(awk '/^MemTotal:/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo) GiB, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
echo "GPU     ${no_gpu:-$gpu}"
echo "nvcc    $("$cuda_compiler" --version 2>/dev/null | sed -n 's/.*release \(.*\)/\1/p' | grep . || echo none)"

rows=() failed=0 checked=0
# row STEP SECONDS OUTCOME FIGURE
row() { rows+=("$(printf '%-20s %5s  %-8s %s' "$1" "$2" "$3" "$4")"); }

# step NAME LIMIT [REASON]: runs step_NAME for LIMIT seconds at most, less if the whole would take too long; skipped for a
# REASON. $good tells whether it was well.
step() {
  local name=$1 limit=$2 reason=${3:-} status=0 start=$SECONDS left
  good=0
  left=$((longest - SECONDS + started))
  [ -n "$reason" ] || [ $left -ge 10 ] || reason="no time left"
  if [ -n "$reason" ]; then
    row "$name" - skipped "$reason"
    return
  fi
  [ "$limit" -le $left ] || limit=$left
  echo "== $name"
  rm -f "$logs/figure"
  timeout --kill-after=5 "$limit" scripts/gpu_check.sh --step "$name" >"$logs/steps/$name.log" 2>&1 || status=$?
  local words took=$((SECONDS - start))
  words=$(cat "$logs/figure" 2>/dev/null || true)
  case $status in
    0)
      row "$name" $took ok "$words"
      good=1 checked=$((checked + 1))
      ;;
    77) row "$name" $took skipped "${words:-see steps/$name.log}" ;;
    124 | 137)
      row "$name" $took FAILED "stopped after $limit s"
      failed=1
      ;;
    *)
      row "$name" $took FAILED "${words:-ended with $status}"
      failed=1
      ;;
  esac
  [ $status = 0 ] || [ $status = 77 ] || tail -n 25 "$logs/steps/$name.log"
}

why=$no_gpu
[ $build_anyway = 0 ] || why=
# a machine without a GPU may take its time
scale=1
[ -z "$no_gpu" ] || scale=15 longest=7200
step bundle $((60 * scale)) "$why"
if [ $good = 1 ]; then
  # shellcheck disable=SC1090,SC1091  # of the bundle
  . "$build-bundle/rowmill-bundle/env.sh"
elif [ -z "$why" ] && [ -n "$bundle" ]; then
  why="the bundle is not unpacked"
fi
[ -z "$nccl" ] || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$nccl/lib
step configure $((60 * scale)) "$why"
[ $good = 1 ] || why=${why:-"not configured"}
step build $((150 * scale)) "$why"
[ $good = 1 ] || why=${why:-"not built"}
if [ -z "$why$no_gpu" ]; then
  # takes a minute or two; a process group of its own, to be ended as one
  set -m
  {
    generate u8 uint8 1 &
    generate f32 float32 4
    wait
  } &
  generator=$!
  set +m
  export GPU_CHECK_GENERATOR=$generator
fi
step build_gpu $((200 * scale)) "$why"
[ $good = 1 ] || why=${why:-"the CUDA module is not built"}
why=${no_gpu:-$why}
checked=0

step tests 120 "$why"
step agrees_with_host 30 "$why"
step modes 30 "$why"
step nccl_one_rank 30 "$why"
step two_ranks_one_gpu 40 "$why"
step generate 90 "$why"
if [ $good = 0 ] && [ -n "$generator" ]; then
  # nothing may run beside what is measured
  kill -- "-$generator" 2>/dev/null || true
  generator=
fi
step rates 75 "$why"
grep -h -E '^(h2d|d2h|device|gemm|dsyrk|bias|product|gram|moments)' "$logs/rates.log" 2>/dev/null || true
step whole_program 90 "$why"
cat "$logs/whole.txt" 2>/dev/null || true
step peers 90 "$why"
cat "$logs/peers.txt" 2>/dev/null || true
step memcheck 60 "$why"
step racecheck 60 "$why"

echo
printf '%-20s %5s  %-8s %s\n' step s outcome figure
printf '%s\n' "${rows[@]}"
echo "$((SECONDS - started)) s; logs in $logs"
[ $failed = 0 ] || exit 1
[ $checked != 0 ] || exit 77
