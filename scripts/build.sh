#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: configures the preset if that was not done, and builds (everything, or the targets) with
# all cores. Quiet unless it fails; the logs lie in build/PRESET.
set -euo pipefail

preset=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=build/$preset
mkdir -p "$folder"

# a configuration that failed leaves no build.ninja; later changes of CMake files are noticed by ninja itself
if [ ! -f "$folder/build.ninja" ]; then
  cmake --preset "$preset" >"$folder/configure.log" 2>&1 || {
    tail -n 25 "$folder/configure.log" >&2
    echo "build.sh: configuring failed; all of it is in $PWD/$folder/configure.log" >&2
    exit 1
  }
fi
first=
[ -f "$folder/build.log" ] || first=" (the first time takes some minutes)"
targets=()
[ $# = 0 ] || targets=(--target "$@")
# a dry run tells whether there is anything to say
if ! ninja -n -C "$folder" "$@" 2>/dev/null | grep -q 'no work to do'; then
  echo "building $preset$first …" >&2
fi
cmake --build --preset "$preset" --parallel "$(nproc)" ${targets[@]+"${targets[@]}"} >"$folder/build.log" 2>&1 || {
  grep -E -A 12 '^FAILED|error:|undefined reference' "$folder/build.log" | head -n 60 >&2 || tail -n 25 "$folder/build.log" >&2
  echo "build.sh: building $preset failed; all of it is in $PWD/$folder/build.log" >&2
  exit 1
}
