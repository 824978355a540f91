#include "io/mpiio/dataset.hpp"

#include <hdf5.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/h5_helper/element.hpp"
#include "io/h5_helper/filters.hpp"
#include "io/h5_helper/unwritten.hpp"
#include "io/h5_write.hpp"

namespace rowmill {

namespace {

using h5::Id;
using h5::must;
using h5::Refusal;

constexpr std::size_t kCacheSlots = 10007;

herr_t follow_no_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

Id open_file(const std::string& path, bool together) {
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "access list");
  must(H5Pset_fapl_mpio(access, together ? MPI_COMM_WORLD : MPI_COMM_SELF, MPI_INFO_NULL), "MPI-IO");
  return Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose, "HDF5 cannot open the file");
}

Id open_dataset(hid_t file, const std::string& name, std::int64_t cache_bytes) {
  const Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "access list");
  must(H5Pset_elink_cb(access, follow_no_link, nullptr), "access list");
  must(H5Pset_chunk_cache(access, kCacheSlots, static_cast<std::size_t>(cache_bytes), 1.0), "access list");
  return Id(H5Dopen2(file, name.c_str(), access), H5Dclose, "HDF5 finds no such data set in the file itself");
}

/// What the helper's plan may allow and this must not: what leads out of the file, and what needs code from elsewhere.
void check_inside(hid_t creation) {
  if (H5Pget_external_count(creation) > 0) throw Refusal("its values lie in other files");
  if (H5Pget_layout(creation) == H5D_VIRTUAL) throw Refusal("it is virtual: its values lie in other data sets");
  for (const h5::Filter& filter : h5::filters_of(creation)) {
    if (!filter.available)
      throw Refusal("HDF5 itself does not have filter " + std::to_string(filter.id) + " (" + filter.text + ")");
  }
}

/// Where all ranks read together, HDF5 1.10 looks for storage chunks that were never written at an address that is
/// none.
bool fits_collective(hid_t dataset, hid_t creation, const InputPlan& plan) {
  if (H5Pget_layout(creation) != H5D_CHUNKED) return true;
  const Id space(H5Dget_space(dataset), H5Sclose, "shape");
  hsize_t stored = 0, all = 1;
  must(H5Dget_num_chunks(dataset, space, &stored), "storage chunks");
  for (std::size_t axis = 0; axis < plan.shape.size(); ++axis)
    all *= static_cast<hsize_t>((plan.shape[axis] - 1) / plan.chunk[axis] + 1);
  return stored == all;
}

/// Buffers were sized by the plan.
void check_as_planned(hid_t dataset, const h5::Element& element, const InputPlan& plan) {
  const Id space(H5Dget_space(dataset), H5Sclose, "shape");
  std::vector<hsize_t> shape(H5S_MAX_RANK);
  const int axes = must(H5Sget_simple_extent_dims(space, shape.data(), nullptr), "shape");
  shape.resize(static_cast<std::size_t>(axes));
  const bool same_shape = std::equal(shape.begin(), shape.end(), plan.shape.begin(), plan.shape.end(),
                                     [](hsize_t a, std::int64_t b) { return a == static_cast<hsize_t>(b); });
  if (!same_shape || !element.numeric || element.type != plan.type)
    throw Refusal("it is not as it was planned: the file was changed meanwhile");
}

[[noreturn]] void refuse(const InputPlan& plan, const std::string& why) {
  throw Error(ExitCode::input, plan.name() + ": cannot be read by MPI-IO: " + why + "; use --io direct");
}

/// Nobody owns or closes it any more.
void leave_open(Id& id) {
  if (id >= 0) H5Iinc_ref(id);
}

}  // namespace

struct MpiioDataset::Impl {
  Impl(const InputPlan& plan, Opening opening)
      : name(plan.name()), together(opening.together), row_axis(static_cast<std::size_t>(plan.row_axis)) {
    must(H5PLset_loading_state(0), "plugins");
    file = open_file(plan.path, together);
    try {
      dataset = open_dataset(file, plan.dataset, opening.cache_bytes);
      const Id creation(H5Dget_create_plist(dataset), H5Pclose, "creation list");
      check_inside(creation);
      const Id stored(H5Dget_type(dataset), H5Tclose, "datatype");
      const h5::Element element = h5::classify(stored);
      check_as_planned(dataset, element, plan);
      type = h5::memory_type(stored, element);
      leaves_buffer = h5::leaves_buffer(creation);
      collective = together && fits_collective(dataset, creation, plan);
      file_space = Id(H5Dget_space(dataset), H5Sclose, "shape");
      transfer = Id(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "transfer list");
    } catch (...) {
      close();
      throw;
    }
    for (const std::int64_t extent : plan.shape) shape.push_back(static_cast<hsize_t>(extent));
    element_bytes = size_of(plan.type);
  }
  ~Impl() { close(); }

  void close() {
    if (!together) return;
    leave_open(dataset);
    leave_open(file);
  }

  void transfer_by(bool in_round) {
    must(H5Pset_dxpl_mpio(transfer, in_round && collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT),
         "transfer list");
  }

  std::string name;
  bool together, leaves_buffer = false, collective = false;
  std::size_t row_axis, element_bytes = 1;
  std::vector<hsize_t> shape;
  Id file, dataset, type, file_space, transfer;  // closed in the opposite order
};

MpiioDataset::MpiioDataset(const InputPlan& plan, Opening opening) {
  const H5Quiet quiet;
  try {
    impl_ = std::make_unique<Impl>(plan, opening);
  } catch (const Refusal& refusal) {
    refuse(plan, refusal.what());
  }
}

MpiioDataset::~MpiioDataset() {
  const H5Quiet quiet;
  impl_.reset();
}

void MpiioDataset::read(RowRange rows, std::byte* to, bool in_round) {
  const H5Quiet quiet;
  Impl& d = *impl_;
  std::vector<hsize_t> start(d.shape.size(), 0), extent = d.shape;
  start[d.row_axis] = static_cast<hsize_t>(rows.first);
  extent[d.row_axis] = static_cast<hsize_t>(rows.count);
  try {
    if (d.leaves_buffer) {
      std::size_t bytes = d.element_bytes;
      for (const hsize_t e : extent) bytes *= e;
      std::memset(to, 0, bytes);
    }
    must(H5Sselect_hyperslab(d.file_space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr), "selection");
    const Id memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose, "selection");
    d.transfer_by(in_round);
    must(H5Dread(d.dataset, d.type, memory, d.file_space, d.transfer, to), "HDF5 cannot read them");
  } catch (const Refusal& refusal) {
    throw Error(ExitCode::input, d.name + ": rows " + std::to_string(rows.first) + " to " +
                                     std::to_string(rows.end() - 1) + " by MPI-IO: " + refusal.what());
  }
}

void MpiioDataset::take_part() {
  const H5Quiet quiet;
  Impl& d = *impl_;
  if (!d.collective) return;
  try {
    const hsize_t one = 1;
    std::uint64_t nowhere = 0;
    const Id memory(H5Screate_simple(1, &one, nullptr), H5Sclose, "selection");
    must(H5Sselect_none(memory), "selection");
    must(H5Sselect_none(d.file_space), "selection");
    d.transfer_by(true);
    must(H5Dread(d.dataset, d.type, memory, d.file_space, d.transfer, &nowhere), "HDF5 cannot take part in reading");
  } catch (const Refusal& refusal) {
    throw Error(ExitCode::input, d.name + ": by MPI-IO: " + refusal.what());
  }
}

}  // namespace rowmill
