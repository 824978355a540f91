#include "io/helper_readers.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/h5_helper_answer.hpp"

namespace rowmill {

HelperReaders::HelperReaders(const InputPlan& plan, std::string program, HelperLimits limits)
    : program_(std::move(program)),
      path_(plan.path),
      dataset_(plan.dataset),
      name_(plan.name()),
      row_axis_(plan.row_axis),
      shape_(plan.shape),
      limits_(limits) {}

HelperReader HelperReaders::start() const {
  HelperReader reader;
  reader.client =
      std::make_unique<H5HelperClient>(program_, name_, limits_, static_cast<std::size_t>(opening_.shared_bytes));
  const auto answer = reader.client->ask(
      {{"op", "open"}, {"axis", row_axis_}, {"cache", opening_.cache_bytes}, {"slots", opening_.cache_slots}},
      path_ + '\0' + dataset_);
  if (!answer.json.contains("shape") || answer.json["shape"] != nlohmann::json(shape_)) {
    throw Error(ExitCode::input, name_ + ": its shape has changed since it was planned: run again");
  }
  return reader;
}

HelperReader HelperReaders::take(std::int64_t band) {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      auto best = std::find_if(idle_.begin(), idle_.end(), [&](const HelperReader& r) { return r.band == band; });
      if (best == idle_.end()) best = idle_.end() - 1;
      HelperReader reader = std::move(*best);
      idle_.erase(best);
      return reader;
    }
  }
  return start();
}

void HelperReaders::give_back(HelperReader reader) {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(reader));
}

}  // namespace rowmill
