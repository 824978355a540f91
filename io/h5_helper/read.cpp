#include "io/h5_helper/read.hpp"

#include <cstring>

#include "io/h5_helper/plan.hpp"
#include "io/h5_helper/unwritten.hpp"

namespace rowmill::h5 {

std::size_t read_rows(const OpenedDataset& dataset, int axis, std::int64_t first, std::int64_t count,
                      std::span<std::byte> to) {
  std::vector<hsize_t> start(dataset.shape().size(), 0), extent = dataset.shape();
  const auto at = static_cast<std::size_t>(axis);
  if (first < 0 || count < 1 || static_cast<hsize_t>(first) >= extent[at] ||
      static_cast<hsize_t>(count) > extent[at] - static_cast<hsize_t>(first)) {
    throw Refusal("rows outside the data set were asked for: it has changed meanwhile");
  }
  start[at] = static_cast<hsize_t>(first);
  extent[at] = static_cast<hsize_t>(count);
  std::size_t bytes = size_of(dataset.element().type);
  for (const hsize_t e : extent) {
    if (__builtin_mul_overflow(bytes, e, &bytes)) throw Refusal("its rows are too long to be read");
  }
  const Id type = dataset.is_member() ? Id(H5Tcopy(dataset.member_type()), H5Tclose, "datatype")
                                      : memory_type(dataset.datatype(), dataset.element());
  if (dataset.is_member()) extent.resize(1);  // a value of the table holds the other axes
  if (bytes > to.size()) throw Refusal("more was asked for than there is room for");
  if (leaves_buffer(dataset.creation())) std::memset(to.data(), 0, bytes);
  const Id file_space(H5Dget_space(dataset.id()), H5Sclose, "shape");
  must(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr), "selection");
  const Id memory_space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose,
                        "selection");
  must(H5Dread(dataset.id(), type, memory_space, file_space, H5P_DEFAULT, to.data()), "it cannot be read");
  return bytes;
}

}  // namespace rowmill::h5
