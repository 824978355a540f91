#!/usr/bin/env bash
# check_format.sh [--fix]: is all C++ laid out as .clang-format says? Exit 77 (skipped) without clang-format 14, since other
# versions lay out differently.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
format=$(command -v clang-format-14) || {
  echo "check_format.sh: skipped, clang-format-14 is not installed"
  exit 77
}
folders=()
for folder in bench comm io kernels src tests; do [ ! -d "$folder" ] || folders+=("$folder"); done
names=$(find "${folders[@]}" -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) | sort)
mapfile -t files <<<"$names"
[ -n "$names" ] || {
  echo "check_format.sh: found no C++ files" >&2
  exit 1
}
if [ "${1:-}" = --fix ]; then exec "$format" -i "${files[@]}"; fi
wrong=()
for file in "${files[@]}"; do
  "$format" --dry-run -Werror "$file" >/dev/null 2>&1 || wrong+=("$file")
done
[ ${#wrong[@]} = 0 ] || {
  printf '%s\n' "${wrong[@]}"
  echo "check_format.sh: these are laid out otherwise; run scripts/check_format.sh --fix" >&2
  exit 1
}
echo "${#files[@]} files are laid out as they should be"
