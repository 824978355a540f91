#include <libdeflate.h>

#include <new>

#include "io/filters/undo.hpp"

namespace rowmill::filters {

namespace {

class DeflateContext : public FilterContext {
 public:
  DeflateContext() : decompressor_(libdeflate_alloc_decompressor()) {
    if (decompressor_ == nullptr) throw std::bad_alloc();
  }
  DeflateContext(const DeflateContext&) = delete;
  DeflateContext& operator=(const DeflateContext&) = delete;
  ~DeflateContext() override { libdeflate_free_decompressor(decompressor_); }

  libdeflate_decompressor* get() const { return decompressor_; }

 private:
  libdeflate_decompressor* decompressor_;
};

}  // namespace

/// A zlib stream (RFC 1950). Bytes behind its end are left alone, as HDF5 does.
std::size_t undo_deflate(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch) {
  if (!scratch.deflate) scratch.deflate = std::make_unique<DeflateContext>();
  libdeflate_decompressor* decompressor = static_cast<DeflateContext&>(*scratch.deflate).get();
  std::size_t read = 0, written = 0;
  switch (
      libdeflate_zlib_decompress_ex(decompressor, from.data(), from.size(), to.data(), to.size(), &read, &written)) {
    case LIBDEFLATE_SUCCESS:
      return written;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      fail(step, "holds more than the " + std::to_string(to.size()) + " bytes that there is room for: it is damaged");
    default:
      fail(step, "is damaged or truncated");
  }
}

}  // namespace rowmill::filters
