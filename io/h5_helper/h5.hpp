#pragma once
// HDF5 for the helper: ids with an owner, and errors as text.
#include <hdf5.h>

#include <stdexcept>
#include <string>
#include <utility>

#ifndef H5_HAVE_PARALLEL
#error "the parallel build of HDF5 is needed"
#endif

namespace rowmill::h5 {

/// What the helper answers as an error; one line.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The request does not fit the data set: the user's mistake, not the file's.
class WrongUsage : public Refusal {
 public:
  using Refusal::Refusal;
};

/// The error stack of HDF5 as "what the call wanted (what went wrong innermost)"; clears it.
std::string error_text();

/// Owns an id and the function that closes it.
class Id {
 public:
  Id() = default;
  /// Throws Refusal("what: HDF5's words") if `id` is an error.
  Id(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id < 0) throw Refusal(what + ": " + error_text());
  }
  Id(Id&& other) noexcept { swap(other); }
  Id& operator=(Id&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  void swap(Id& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
  }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// Throws Refusal if an HDF5 call failed, else passes its answer on.
template <typename T>
T must(T answer, const std::string& what) {
  if (answer < 0) throw Refusal(what + ": " + error_text());
  return answer;
}

}  // namespace rowmill::h5
