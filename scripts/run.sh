#!/usr/bin/env bash
# run.sh                installs what is missing, builds, and shows rowmill at work on a data set with planted answers
# run.sh ARGUMENTS...   installs what is missing, builds, and runs `rowmill ARGUMENTS...` here
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/install.sh"
"$root/scripts/build.sh" release rowmill rowmill-h5-helper
rowmill=$root/build/release/bin/rowmill
[ $# = 0 ] || exec "$rowmill" "$@"

show() {
  echo "\$ $*"
  "$@"
  echo
}
demo=$root/build/demo
mkdir -p "$demo"
cd "$demo"
PATH=$root/build/release/bin:$PATH
echo "In $demo, with $root/build/release/bin on the PATH:"
echo
show rowmill generate demo.h5:/X --shape 500000x24 --chunk 8192x24 --seed 1 --rank 5 --noise 1 --overwrite
show rowmill cov demo.h5:/X -o cov.h5 --overwrite
