#include <zstd.h>

#include <new>

#include "io/filters/undo.hpp"

namespace rowmill::filters {

namespace {

class ZstdContext : public FilterContext {
 public:
  ZstdContext() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
  }
  ZstdContext(const ZstdContext&) = delete;
  ZstdContext& operator=(const ZstdContext&) = delete;
  ~ZstdContext() override { ZSTD_freeDCtx(context_); }

  ZSTD_DCtx* get() const { return context_; }

 private:
  ZSTD_DCtx* context_;
};

}  // namespace

std::size_t decompress_zstd(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch) {
  if (!scratch.zstd) scratch.zstd = std::make_unique<ZstdContext>();
  ZSTD_DCtx* context = static_cast<ZstdContext&>(*scratch.zstd).get();
  const std::size_t written = ZSTD_decompressDCtx(context, to.data(), to.size(), from.data(), from.size());
  if (ZSTD_isError(written) != 0) fail(step, std::string("is damaged or truncated: ") + ZSTD_getErrorName(written));
  return written;
}

std::size_t undo_zstd(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch) {
  return decompress_zstd(step, from, to, scratch);
}

}  // namespace rowmill::filters
