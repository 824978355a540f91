#!/usr/bin/env bash
# test.sh [--quick]: installs what is missing, builds and runs the tests: all of them as released, the threaded rooms under
# ThreadSanitizer, and what is named below under AddressSanitizer and UBSan. With --quick as released only.
set -euo pipefail

quick=0
for argument in "$@"; do
  case $argument in
    --quick) quick=1 ;;
    *)
      echo "usage: test.sh [--quick]" >&2
      exit 2
      ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install.sh tests
# mpirun refuses root unless told that this is meant
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

passed=0 failed=0 skipped=0

# count PATTERN FILE: test cases of a JUnit file; what tests printed is escaped in it, so that it cannot be taken for one
count() { grep -cE "^[[:space:]]*<$1" "$2" || true; }

# suite PRESET [ctest options]
suite() {
  local preset=$1 report=$PWD/build/$1/tests.xml status=0 tests good skips
  shift
  echo "== $preset"
  rm -f "$report"
  ctest --preset "$preset" --no-tests=error --parallel "$(nproc)" --output-junit "$report" "$@" || status=$?
  [ -f "$report" ] || {
    echo "test.sh: no test ran in $preset" >&2
    exit 1
  }
  tests=$(count 'testcase ' "$report")
  good=$(count 'testcase .* status="run"' "$report")
  skips=$(count 'skipped message="SKIP_' "$report")
  passed=$((passed + good)) skipped=$((skipped + skips)) failed=$((failed + tests - good - skips))
  # ctest may also fail without a test that failed
  [ $status = 0 ] || [ $((tests - good - skips)) -gt 0 ] || failed=$((failed + 1))
}

# the names of the programs behind the tests of a label; tests are named PROGRAM or PROGRAM.NUMBERranks
programs_of() { ctest --preset "$1" -N -L "$2" | sed -n 's/^ *Test *#[0-9]*: \([^. ]*\).*/\1/p' | sort -u; }

scripts/build.sh release
suite release
if [ $quick = 0 ]; then
  scripts/build.sh tsan rowmill rowmill-h5-helper
  threaded='^(core|pipeline|engine)$'
  programs=$(programs_of tsan "$threaded")
  # shellcheck disable=SC2086  # one argument a name
  [ -z "$programs" ] || scripts/build.sh tsan $programs
  suite tsan -L "$threaded"
  scripts/build.sh asan
  # Not yet clean here, and so left to the release build: tests that start the whole program (budgets of memory that a
  # sanitizer's own breaks, what Open MPI leaves allocated) and the parallel writer (transfers abandoned after a failure
  # keep their memory on purpose).
  echo "asan: without the tests labelled app and io_parallel"
  suite asan -LE '^(app|io_parallel)$'
fi

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
