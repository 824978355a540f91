#pragma once
// What only H5Dread can read (filters, virtual data sets, odd types, …): through helper processes, one for each thread
// that reads at the same time, so that decompression runs in parallel.
#include <memory>
#include <mutex>
#include <vector>

#include "io/dense_source.hpp"
#include "io/h5_helper_client.hpp"
#include "io/input_plan.hpp"
#include "io/row_layout.hpp"

namespace rowmill {

class HelperSource : public DenseSource {
 public:
  HelperSource(const InputPlan& plan, std::string program, HelperLimits limits);

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  struct Reader {
    std::unique_ptr<H5HelperClient> client;
    std::int64_t band = -1;  ///< of storage chunks that it read last, and may still hold decompressed
  };
  void choose_cache(const InputPlan& plan);
  Reader start_reader() const;
  Reader take_reader(std::int64_t band);
  void give_back(Reader reader);
  void fill_piece(Reader& reader, RowRange rows, std::byte* to);

  std::string program_;
  HelperLimits limits_;
  std::vector<std::int64_t> shape_;
  std::string path_, dataset_;
  RowLayout layout_;
  std::int64_t piece_rows_ = 1, cache_bytes_ = 1 << 20, cache_slots_ = 521;
  std::mutex mutex_;
  std::vector<Reader> idle_;
};

}  // namespace rowmill
