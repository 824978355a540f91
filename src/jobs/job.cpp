#include "jobs/job.hpp"

#include <cstring>
#include <stdexcept>

#include "core/error.hpp"

namespace rowmill {

namespace {

constexpr std::uint64_t state_magic = 0x31455441'54534d52;  // "RMSTATE1"

void put(std::vector<std::byte>& bytes, const void* from, std::size_t count) {
  const std::size_t at = bytes.size();
  bytes.resize(at + count);
  if (count > 0) std::memcpy(bytes.data() + at, from, count);
}

void put(std::vector<std::byte>& bytes, std::uint64_t value) {
  put(bytes, &value, sizeof value);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size()) throw Error(ExitCode::input, "saved state is cut short");
    const auto piece = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return piece;
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

std::vector<std::byte> State::serialise() const {
  std::vector<std::byte> bytes;
  put(bytes, state_magic);
  put(bytes, static_cast<std::uint64_t>(pass));
  put(bytes, arrays.size());
  for (const auto& [name, values] : arrays) {
    put(bytes, name.size());
    put(bytes, values.size());
    put(bytes, name.data(), name.size());
    put(bytes, values.data(), values.size() * sizeof(double));
  }
  return bytes;
}

void Job::write_rows(const Block&, PartialView, double*, Ops&, Queue) const {
  throw std::logic_error("a job without row output was asked for rows");
}

State State::deserialise(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  if (reader.take<std::uint64_t>() != state_magic) throw Error(ExitCode::input, "saved state is not rowmill's");
  State state;
  state.pass = static_cast<int>(reader.take<std::uint64_t>());
  const auto arrays = reader.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < arrays; ++i) {
    const auto name_bytes = reader.take<std::uint64_t>();
    const auto count = reader.take<std::uint64_t>();
    const auto name = reader.take(name_bytes);
    if (count > (std::uint64_t{1} << 58)) throw Error(ExitCode::input, "saved state is cut short");
    const auto numbers = reader.take(count * sizeof(double));
    std::vector<double> values(count);
    if (count > 0) std::memcpy(values.data(), numbers.data(), numbers.size());
    state.arrays.emplace(std::string(reinterpret_cast<const char*>(name.data()), name.size()), std::move(values));
  }
  return state;
}

}  // namespace rowmill
