#pragma once
// Helper processes that have a data set open, one for each thread that reads at the same time.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io/h5_helper_client.hpp"
#include "io/input_plan.hpp"

namespace rowmill {

/// Memory that a helper has to itself before it reads (measured: 4 to 6 MiB; the pages of its libraries are shared).
inline constexpr std::int64_t kHelperBytes = 8 << 20;

struct HelperReader {
  std::unique_ptr<H5HelperClient> client;
  std::int64_t band = -1;  ///< of storage chunks that it read last, and may still hold decompressed
};

/// Thread safe. A helper that failed is not given back, so that the next thread starts a new one.
class HelperReaders {
 public:
  /// How the data set is opened, and the memory that a helper shares with the program.
  struct Opening {
    std::int64_t cache_bytes = 0, cache_slots = 521;
    std::int64_t shared_bytes = 0;
  };
  HelperReaders(const InputPlan& plan, std::string program, HelperLimits limits);
  void set_opening(const Opening& opening) { opening_ = opening; }

  /// The idle one that read `band` last, another idle one, or one that is started now. Throws Error(input).
  HelperReader take(std::int64_t band);
  void give_back(HelperReader reader);

 private:
  HelperReader start() const;

  std::string program_, path_, dataset_, name_;
  int row_axis_;
  std::vector<std::int64_t> shape_;
  HelperLimits limits_;
  Opening opening_;
  std::mutex mutex_;
  std::vector<HelperReader> idle_;
};

}  // namespace rowmill
