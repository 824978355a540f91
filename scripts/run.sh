#!/usr/bin/env bash
# run.sh                installs what is missing, builds, and shows rowmill at work on a data set with planted answers
# run.sh ARGUMENTS...   installs what is missing, builds, and runs `rowmill ARGUMENTS...` here
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/install.sh"
"$root/scripts/build.sh" release rowmill rowmill-h5-helper
rowmill=$root/build/release/bin/rowmill
[ $# = 0 ] || exec "$rowmill" "$@"

demo=$root/build/demo
mkdir -p "$demo"
echo "\$ rowmill generate demo.h5:/X --shape 500000x24 --chunk 8192x24 --seed 1 --rank 5 --noise 1"
"$rowmill" generate "$demo/demo.h5:/X" --shape 500000x24 --type float32 --chunk 8192x24 --seed 1 --rank 5 --noise 1 --overwrite
echo
echo "\$ rowmill cov demo.h5:/X -o cov.h5"
"$rowmill" cov "$demo/demo.h5:/X" -o "$demo/cov.h5" --threads "$(nproc)" --overwrite
echo
echo "The data set is $demo/demo.h5, the result is $demo/cov.h5"
