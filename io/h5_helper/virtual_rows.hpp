#pragma once
// Which files the rows of a virtual data set come from, so that few of them are open at a time: HDF5 keeps sources open
// until the data set is closed, and gives fill values for those that it cannot open.
#include <cstdint>
#include <vector>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

class VirtualRows {
 public:
  VirtualRows() = default;
  /// Of the creation list of a virtual data set. Throws Refusal.
  VirtualRows(hid_t creation, int row_axis);

  /// True if all sources together are more files than are to be open at a time.
  bool many() const { return many_; }

  /// How many of the rows from `first` on, `count` at most and at least one, come from few files.
  std::int64_t at_once(std::int64_t first, std::int64_t count) const;

 private:
  struct Mapping {
    std::int64_t first, last;  ///< rows, both included
    std::size_t file;
  };
  std::vector<Mapping> mappings_;  ///< ascending by first row
  bool many_ = false;
};

/// Throws Refusal if no more files can be opened, so that some may not have been.
void check_descriptors();

}  // namespace rowmill::h5
