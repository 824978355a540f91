#!/usr/bin/env bash
# test.sh [--quick] [--again]: installs what is missing, builds and runs the tests: all of them as released, the threaded
# rooms under ThreadSanitizer, all again under AddressSanitizer and UBSan. With --quick as released only. Tests that have
# passed on these very sources and installed packages are not run a second time unless --again is given.
set -euo pipefail

quick=0 again=0
for argument in "$@"; do
  case $argument in
    --quick) quick=1 ;;
    --again) again=1 ;;
    *)
      echo "usage: test.sh [--quick] [--again]" >&2
      exit 2
      ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install.sh tests
# mpirun refuses root unless told that this is meant
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# MPI asks for this machine's name at every start; where /etc/hosts lacks it, a name server may keep it waiting ten seconds
export RES_OPTIONS="timeout:1 attempts:1"

# all that the outcome of the tests depends on and that can change here
state=$({
  find . \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
  dpkg-query -W 2>/dev/null || true
  ls ../shared/corpus/manifest.json 2>/dev/null || true
} | sha256sum)

passed=0 failed=0 skipped=0

# count PATTERN FILE: test cases of a JUnit file; what tests printed is escaped in it, so that it cannot be taken for one
count() { grep -cE "^[[:space:]]*<$1" "$2" || true; }

# suite PRESET [ctest options]
suite() {
  local preset=$1 report=$PWD/build/$1/tests.xml stamp=$PWD/build/$1/tests.passed status=0 each=2 tests good skips
  shift
  if [ $again = 0 ] && [ "$(head -n 1 "$stamp" 2>/dev/null)" = "$state" ]; then
    read -r good skips <<<"$(tail -n 1 "$stamp")"
    echo "== $preset: $good passed, $skips skipped before, on these very sources and packages (--again runs them again)"
    passed=$((passed + good)) skipped=$((skipped + skips))
    return
  fi
  echo "== $preset"
  rm -f "$report" "$stamp" "$PWD/build/$preset/skips"
  export ROWMILL_TEST_SKIPS=$PWD/build/$preset/skips
  # more than there are processors: tests of faults and of ranks mostly wait, but under sanitizers less
  [ "$preset" != release ] || each=3
  ctest --preset "$preset" --no-tests=error --parallel $((each * $(nproc))) --output-junit "$report" "$@" || status=$?
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
  if [ -s "$ROWMILL_TEST_SKIPS" ]; then
    echo "== $preset: test cases that were skipped, by reason:"
    sed 's/^[^:]*: //' "$ROWMILL_TEST_SKIPS" | sort | uniq -c
  fi
  [ $status != 0 ] || printf '%s\n' "$state" "$good $skips" >"$stamp"
}

# the names of the programs behind the tests of a label; tests are named PROGRAM or PROGRAM.NUMBERranks
programs_of() { ctest --preset "$1" -N -L "$2" | sed -n 's/^ *Test *#[0-9]*: \([^. ]*\).*/\1/p' | sort -u; }

scripts/build.sh release
suite release
if [ $quick = 0 ]; then
  scripts/build.sh tsan rowmill-h5-helper
  threaded='^(core|pipeline|engine|threaded)$'
  programs=$(programs_of tsan "$threaded")
  # shellcheck disable=SC2086  # one argument a name
  [ -z "$programs" ] || scripts/build.sh tsan $programs
  suite tsan -L "$threaded"
  scripts/build.sh asan
  suite asan
fi

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
