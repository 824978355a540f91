#!/usr/bin/env bash
# gpu_bundle.sh [OUT.tar.xz]: packs the Debian packages that rowmill is built from, for a machine that has a compiler, nvcc,
# CMake and ninja but can reach no package registry. Default: build/gpu-bundle.tar.xz, some 10 MB. Nothing is installed here.
#
# There: tar xf gpu-bundle.tar.xz && . rowmill-bundle/env.sh, then build as ever; scripts/gpu_check.sh does it by itself.
# The machine there must be of the same architecture and its C library no older than that of the packages.
set -euo pipefail

out=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")/../build/gpu-bundle.tar.xz}")
largest=$((60 * 1000 * 1000))
packages=(
  libopenmpi3 libopenmpi-dev openmpi-bin openmpi-common libhwloc15 libevent-core-2.1-7 libevent-pthreads-2.1-7 libpmix2
  libmunge2 libhdf5-openmpi-103-1 libhdf5-openmpi-hl-100 libhdf5-openmpi-dev libsz2 libaec0 libaec-dev libhwy1 libhwy-dev
  libblosc1 libblosc-dev libsnappy1v5 libdeflate0 libdeflate-dev liblz4-1 liblz4-dev liblzf1 liblzf-dev libzstd1 libzstd-dev
  libspdlog1.10 libspdlog-dev libfmt9 libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev googletest
  libbenchmark1debian libbenchmark-dev pkgconf-bin libpkgconf3)
# taken there only where the system has no such library of its own
spare_packages=(libudev1 libssl3 zlib1g)

say() { echo "gpu_bundle.sh: $*" >&2; }
fail() {
  say "$1"
  exit 1
}

for command in apt-get dpkg gcc readelf xz; do command -v $command >/dev/null || fail "$command is needed"; done
work=$(mktemp -d "${TMPDIR:-/tmp}/rowmill-bundle.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/rowmill-bundle
lib=usr/lib/$(gcc -print-multiarch)
mkdir -p "$work/packages" "$root/spare" "$(dirname "$out")"

fetch() {
  (cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root download "${packages[@]}" "${spare_packages[@]}") \
    >"$work/fetch.log" 2>&1 || {
    tail -n 5 "$work/fetch.log" >&2
    fail "the packages could not be fetched; is this Debian 12, and are its lists fresh (apt-get update)?"
  }
}

unpack() {
  local package file
  for package in "${packages[@]}"; do dpkg -x "$work/packages/${package}"_*.deb "$root"; done
  for package in "${spare_packages[@]}"; do dpkg -x "$work/packages/${package}"_*.deb "$work/spare"; done
  if [ -d "$root/lib" ]; then
    cp -a "$root/lib/." "$root/usr/lib/"
    rm -rf "${root:?}/lib"
  fi
  for file in libudev.so.1 libcrypto.so.3 libz.so.1; do
    cp "$(find "$work/spare" -name $file | head -n 1)" "$root/spare/$file"  # what the link points to
  done
}

# Documents, other languages and archives are not for here; tests link GoogleTest's archives.
trim() {
  local folder
  cd "$root"
  for folder in doc doc-base man lintian bug gdb bash-completion python3; do rm -rf "usr/share/$folder"; done
  rm -rf usr/src etc/ufw usr/lib/debug
  find . -name '*.a' ! -name 'libgtest*.a' ! -name 'libgmock*.a' ! -name 'libbenchmark_main.a' -delete
  find . \( -name '*.mod' -o -name 'libmpi_usempi*' -o -name 'libmpi_mpifh*' -o -name 'libmpi_java*' -o -name 'liboshmem*' \
    -o -name 'mpi.jar' -o -path '*hdf5*' -name '*fortran*' \) -delete
}

# Links that packages leave to be made while they are installed.
link_alternatives() {
  local name folder file
  cd "$root"
  for name in mpicc mpicxx mpirun; do ln -sfn $name.openmpi usr/bin/$name; done
  ln -sfn mpirun.openmpi usr/bin/mpiexec
  ln -sfn pkgconf usr/bin/pkg-config
  for folder in "$lib/openmpi/lib" "$lib/hdf5/openmpi"; do
    for file in "$folder"/lib*.so*; do
      name=$(basename "$file")
      [ -e "$lib/$name" ] || ln -sfn "${folder#"$lib/"}/$name" "$lib/$name"
    done
  done
}

# HDF5 is linked with libcurl for a driver that reads from a cloud, which rowmill never opens. A library in which every call
# fails stands in where there is none: libcurl itself would bring forty others.
make_stub_of_curl() {
  local name
  for name in $(readelf --dyn-syms --wide "$root/$lib"/libhdf5_openmpi.so.103 | sed -n 's/.* UND \(curl_[a-z_]*\)@.*/\1/p'); do
    echo "long $name(void) { return 0; }"
  done >"$work/curl.c"
  grep -q curl_easy_init "$work/curl.c" || fail "HDF5 no longer needs libcurl; leave its stub out"
  echo 'CURL_OPENSSL_4 { global: curl_*; local: *; };' >"$work/curl.map"
  gcc -shared -fPIC -s -w -o "$root/spare/libcurl.so.4" "$work/curl.c" -Wl,-soname,libcurl.so.4 \
    -Wl,--version-script="$work/curl.map"
}

elf_files() { find "$root" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print; }
needed_by() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# Every library that something here needs must be here too, or be one that every system with a compiler has. Plugins of MPI
# for networks and launchers that are not carried are left out; anything else that lacks something is a mistake above.
check_needs() {
  local file name gone=1 lacking
  while [ $gone = 1 ]; do
    gone=0 lacking=
    for file in $(elf_files); do
      for name in $(needed_by "$file"); do
        case $name in
          libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libutil.so.* | libgcc_s.so.* | libstdc++.so.* | \
            ld-linux*) continue ;;
        esac
        if [ -e "$root/$lib/$name" ] || [ -e "$root/spare/$name" ]; then continue; fi
        if [[ $file == */openmpi3/mca_* || $file == */pmix/mca_* || $file == */libmca_common_* || $file == */libompi_dbg* ]]; then
          rm -f "$file"
          gone=1
        else
          lacking="$lacking ${file#"$root/"}($name)"
        fi
        break
      done
    done
    # links to what was left out
    find "$root" -xtype l -name 'libmca_common_*' -delete
  done
  # programs of packages that nobody calls here
  for file in $lacking; do
    [[ $file == usr/bin/* ]] || fail "not carried, but needed:$lacking"
    rm -f "$root/${file%%(*}"
  done
}

# NCCL itself is opened at run time; to build, its header is enough, which not every machine with its library has.
copy_header_of_nccl() {
  local header
  header=$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")/../include/nccl.h
  [ -f "$header" ] || header=/usr/include/nccl.h
  if [ -f "$header" ]; then
    mkdir -p "$root/usr/include"
    cp "$header" "$root/usr/include/nccl.h"
  else
    say "no nccl.h here: the other machine needs one"
  fi
}

# Paths in .pc, .cmake and wrapper files get a mark for their prefix, which env.sh puts in.
mark_prefix() {
  local file
  cd "$root"
  grep -rlI -E '/usr(/|$)' usr --include='*.pc' --include='*.cmake' --include='*wrapper-data.txt' | sort >marked
  while read -r file; do
    [ -L "$file" ] || sed -i -E 's#(^|[^A-Za-z0-9_.}]|-I|-L)/usr(/|$)#\1@ROWMILL_BUNDLE@/usr\2#g' "$file"
  done <marked
  sed "s#@LIB@#$lib#g" >env.sh <<'ENV'
# . rowmill-bundle/env.sh, in bash, from wherever it was unpacked
ROWMILL_BUNDLE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
_prefix=$(cat "$ROWMILL_BUNDLE/.prefix" 2>/dev/null || echo @ROWMILL_BUNDLE@)
if [ "$_prefix" != "$ROWMILL_BUNDLE" ]; then
  while read -r _file; do
    [ -L "$ROWMILL_BUNDLE/$_file" ] || sed -i "s#$_prefix/usr#$ROWMILL_BUNDLE/usr#g" "$ROWMILL_BUNDLE/$_file"
  done <"$ROWMILL_BUNDLE/marked"
  echo "$ROWMILL_BUNDLE" >"$ROWMILL_BUNDLE/.prefix"
fi
_lib=$ROWMILL_BUNDLE/@LIB@
_known=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
for _file in "$ROWMILL_BUNDLE"/spare/*; do
  case $_known in
    *"$(basename "$_file") "*) ;; # the system's own serves
    *) ln -sfn "$_file" "$_lib/$(basename "$_file")" ;;
  esac
done
export OPAL_PREFIX=$ROWMILL_BUNDLE/usr OPAL_SYSCONFDIR=$ROWMILL_BUNDLE/etc/openmpi OPAL_LIBDIR=$_lib/openmpi/lib
export OPAL_PKGLIBDIR=$_lib/openmpi/lib/openmpi3 OPAL_INCLUDEDIR=$_lib/openmpi/include
export OPAL_PKGINCLUDEDIR=$_lib/openmpi/include/openmpi OPAL_DATADIR=$ROWMILL_BUNDLE/usr/share
export OPAL_PKGDATADIR=$ROWMILL_BUNDLE/usr/share/openmpi PMIX_INSTALL_PREFIX=$ROWMILL_BUNDLE/usr PMIX_PREFIX=$ROWMILL_BUNDLE/usr
export PMIX_MCA_mca_base_component_path=$_lib/pmix2/lib/pmix HWLOC_PLUGINS_PATH=/nonexistent HWLOC_HIDE_ERRORS=2
# one machine: no launcher of other machines, no networks
export OMPI_MCA_plm_rsh_agent= OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader
export PATH=$ROWMILL_BUNDLE/usr/bin:$PATH
export LD_LIBRARY_PATH=$_lib:$_lib/openmpi/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PKG_CONFIG_PATH=$_lib/pkgconfig:$_lib/openmpi/lib/pkgconfig:$ROWMILL_BUNDLE/usr/share/pkgconfig
export CMAKE_PREFIX_PATH=$ROWMILL_BUNDLE/usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
unset _prefix _file _lib _known
ENV
}

fetch
unpack
trim
link_alternatives
make_stub_of_curl
check_needs
copy_header_of_nccl
mark_prefix
(cd "$work/packages" && for file in *.deb; do echo "${file%.deb}"; done) >"$root/packages"
tar -C "$work" --sort=name --owner=0 --group=0 --mtime=@0 -c rowmill-bundle | xz -6 >"$out.part"
[ "$(stat -c %s "$out.part")" -le $largest ] || fail "the bundle is larger than $largest bytes"
mv "$out.part" "$out"
echo "$out: $(stat -c %s "$out") bytes, $(wc -l <"$root/packages") packages"
