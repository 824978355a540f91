#!/usr/bin/env bash
# install.sh [tests]: installs the Debian/Ubuntu packages that rowmill is built from (with `tests`: and tested with) and
# that are missing. Says nothing where nothing is missing; a call then takes some hundredths of a second.
set -euo pipefail

packages=(cmake g++ libaec-dev libblosc-dev libcli11-dev libdeflate-dev libhdf5-openmpi-dev libhwy-dev liblz4-dev liblzf-dev
  libopenmpi-dev libspdlog-dev libzstd-dev ninja-build nlohmann-json3-dev openmpi-bin pkg-config libgtest-dev libgmock-dev)
# what only tests use; on systems that lack one of them the tests that need it are skipped, saying so
optional=()
if [ "${1:-}" = tests ]; then
  # the sanitizers' builds: clang compiles them twice as fast as GCC, and reads all of the code in another way
  packages+=(clang libclang-rt-dev lld python3)
  optional=(clang-format-14 munge python3-h5py python3-numpy slurm-client slurm-wlm-basic-plugins slurmctld slurmd)
fi

say() { echo "install.sh: $*" >&2; }

if ! command -v dpkg-query >/dev/null; then
  say "this is no Debian or Ubuntu; going on with what is there (needed are, by Debian's names: ${packages[*]})"
  exit 0
fi

# Prints those of its arguments that are not installed.
missing() {
  local installed
  # a package that dpkg has never heard of makes dpkg-query fail after it has told of the others
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  local package
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || echo "$package"
  done
}

# no process substitution in these scripts: a bare chroot may have no /dev/fd
wanted_lines=$(missing "${packages[@]}" ${optional[@]+"${optional[@]}"})
mapfile -t wanted <<<"$wanted_lines"
[ -n "$wanted_lines" ] || exit 0

as_root=(env)
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || {
    say "not root and no sudo; as root run: apt-get install --no-install-recommends ${wanted[*]}"
    exit 1
  }
  as_root=(sudo env)
fi
log=$(mktemp "${TMPDIR:-/tmp}/rowmill-install.XXXXXX")
trap 'rm -f "$log"' EXIT

apt() {
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@" >>"$log" 2>&1 </dev/null
}
fail() {
  tail -n 15 "$log" >&2
  say "$1"
  exit 1
}

say "${#wanted[@]} packages are missing; refreshing the package lists"
# Lists may be absent (a bare system) or old: refreshed once, when something is missing.
apt update || say "the package lists could not be refreshed; trying with those that are there"

# one call for all: a name that is not in the lists makes it fail after it has told of the others
known=$(apt-cache show --no-all-versions "${wanted[@]}" 2>/dev/null | sed -n 's/^Package: //p' || true)
install=()
for package in "${wanted[@]}"; do
  if grep -qxF "$package" <<<"$known"; then
    install+=("$package")
  elif [[ " ${packages[*]} " == *" $package "* ]]; then
    fail "no package $package in this system's lists; rowmill needs Debian 12, Ubuntu 24.04 or newer"
  fi
done
[ ${#install[@]} -gt 0 ] || exit 0
say "installing ${#install[@]} packages: ${install[*]}"
apt install -y --no-install-recommends "${install[@]}" || fail "apt-get could not install: ${install[*]}"
