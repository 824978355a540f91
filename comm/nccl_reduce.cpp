#include "comm/nccl_reduce.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "comm/device_patience.hpp"
#include "comm/nccl_link.hpp"
#include "comm/reducible.hpp"

namespace rowmill {
namespace {

constexpr Heartbeat kBeat{Heartbeat::Stage::combining, -1};
constexpr int kOldestVersion = 21400;  // the first with communicators that do not block

NcclCalls::Type nccl_type(ElementKind kind) {
  switch (kind) {
    case ElementKind::i8:
      return NcclCalls::Type::int8;
    case ElementKind::i32:
      return NcclCalls::Type::int32;
    case ElementKind::i64:
      return NcclCalls::Type::int64;
    default:
      return NcclCalls::Type::float64;
  }
}

NcclCalls::Op nccl_op(Combine how) {
  if (how == Combine::min) return NcclCalls::Op::min;
  return how == Combine::max ? NcclCalls::Op::max : NcclCalls::Op::sum;
}

std::string version_text(std::int64_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// A number that tells lists of reductions apart (FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/).
std::int64_t fingerprint(std::span<const Reduction> reductions) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&hash](std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3;
  };
  for (const Reduction& one : reductions) {
    take(static_cast<std::uint64_t>(one.count));
    take(static_cast<std::uint64_t>(one.kind));
    take(static_cast<std::uint64_t>(one.how));
  }
  return static_cast<std::int64_t>(hash >> 1);  // its negative is a number too
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Communicator& ranks, Backend& backend, const NcclLibrary& library, NcclTimes times)
      : ranks_(ranks), timeout_(times.timeout) {
    agree_on_library(library);
    link_.emplace(ranks, *library.calls, times);
    connect();
    try_out(backend);
  }

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  bool reduces_on_device() const override { return true; }
  void broadcast(std::vector<std::byte>& bytes, int root) override { ranks_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& bytes) override {
    return ranks_.gather(bytes);
  }
  Verdict poll(const Heartbeat& mine) override { return ranks_.poll(mine); }
  void announce(const Failure& failure) override { ranks_.announce(failure); }
  void request_stop() override { ranks_.request_stop(); }
  Agreement agree(const std::optional<Failure>& mine, const Heartbeat& heartbeat) override {
    return ranks_.agree(mine, heartbeat);
  }
  [[noreturn]] void end_all(const std::string& text) override {
    ranks_.end_all(text);
    std::abort();  // GCC forgets that a virtual function does not return
  }

  void reduce(Backend& backend, void* data, std::int64_t count, ElementKind kind, Combine how, Queue queue) override {
    const Reduction one{data, count, kind, how};
    reduce_all(backend, {&one, 1}, queue);
  }

  void reduce_all(Backend& backend, std::span<const Reduction> reductions, Queue queue) override;

 private:
  void agree_on_library(const NcclLibrary& library);
  void connect();
  void try_out(Backend& backend);
  std::array<std::int64_t, 2> extremes(std::int64_t mine);
  template <typename Work>
  void or_abort(const Work& work);

  Communicator& ranks_;
  const std::chrono::milliseconds timeout_;
  // The ranks meet over host memory, whatever the sums lie in.
  const std::unique_ptr<Backend> host_ = make_host_backend();
  const Queue host_queue_ = host_->make_queue();
  std::optional<NcclLink> link_;
};

/// The least and the greatest number of all ranks. No rank returns before all have come; one that does not is watched
/// by its heartbeats.
std::array<std::int64_t, 2> NcclCommunicator::extremes(std::int64_t mine) {
  std::array words{-mine, mine};
  ranks_.reduce(*host_, words.data(), 2, ElementKind::i64, Combine::max, host_queue_);
  return {-words[0], words[1]};
}

void NcclCommunicator::agree_on_library(const NcclLibrary& library) {
  int version = 0;
  std::string why_not = library.why_not;
  if (library.calls) {
    const int result = library.calls->get_version(&version);
    if (result != NcclCalls::success) {
      why_not = "ncclGetVersion failed: " + library.calls->describe(result, nullptr);
      version = 0;
    } else if (version < kOldestVersion) {
      why_not = "NCCL is of version " + version_text(version) + ", too old";
      version = 0;
    }
  }
  const auto [oldest, newest] = extremes(version);
  if (version == 0) throw Error(ExitCode::device, "NCCL cannot be used: " + why_not);
  if (oldest == 0) throw Error(ExitCode::device, "NCCL cannot be used: another rank has none that is new enough");
  if (oldest == newest) return;
  throw Error(ExitCode::device, "NCCL cannot be used: ranks have versions " + version_text(oldest) + " to " +
                                    version_text(newest) + "; give all nodes the same");
}

void NcclCommunicator::connect() {
  or_abort([this] {
    std::vector<std::byte> bytes(sizeof(NcclCalls::Id));
    NcclCalls::Id id{};
    if (rank() == 0) {
      id = link_->make_id();
      std::memcpy(bytes.data(), id.data(), id.size());
    }
    ranks_.broadcast(bytes, 0);
    std::memcpy(id.data(), bytes.data(), id.size());
    extremes(0);
    link_->connect(id);
  });
}

/// One small sum over all ranks.
void NcclCommunicator::try_out(Backend& backend) {
  const Queue queue = backend.make_queue();
  const DeviceBuffer memory(backend, sizeof(std::int64_t), queue);
  auto* const number = static_cast<std::int64_t*>(backend.allocate_staging(sizeof(std::int64_t)));
  *number = rank() + 1;
  // After a failure `number` is not given back: the device may still use it.
  backend.copy(memory.data(), number, sizeof *number, queue);
  reduce(backend, memory.data(), 1, ElementKind::i64, Combine::sum, queue);
  backend.copy(number, memory.data(), sizeof *number, queue);
  backend.wait_host(backend.record(queue));
  const std::int64_t sum = *number, ranks = size();
  backend.release_staging(number, sizeof *number);
  const auto [least, greatest] = extremes(sum);
  if (least == greatest && sum == ranks * (ranks + 1) / 2) return;
  throw Error(ExitCode::device, "NCCL cannot be used: summing 1 to " + std::to_string(ranks) + " it gave " +
                                    std::to_string(least) + " to " + std::to_string(greatest));
}

/// Does `work`; if it fails all ranks hear of it at once and NCCL gives up on each.
template <typename Work>
void NcclCommunicator::or_abort(const Work& work) {
  try {
    work();
  } catch (const PeerFailed& error) {
    link_->abort(error.what());
    throw;
  } catch (const Error& error) {
    ranks_.announce({error.code(), std::nullopt, error.what()});
    link_->abort(error.what());
    throw;
  } catch (const std::exception& error) {
    ranks_.announce({ExitCode::failed, std::nullopt, std::string("internal error: ") + error.what()});
    link_->abort(error.what());
    throw;
  }
}

void NcclCommunicator::reduce_all(Backend& backend, std::span<const Reduction> reductions, Queue queue) {
  std::vector<NcclLink::Transfer> transfers;
  for (const Reduction& one : reductions) {
    check_reducible(one.kind, one.how, one.count);
    if (one.count == 0) continue;
    transfers.push_back({one.data, static_cast<std::size_t>(one.count), nccl_type(one.kind), nccl_op(one.how)});
  }
  if (!link_->usable()) throw Error(ExitCode::device, "NCCL's communicator was given up after a failure");
  or_abort([&] {
    // the work before may be long: it does not count as NCCL's
    wait_for_queue(ranks_, backend, queue, timeout_, [this] {
      if (ranks_.poll(kBeat).failed) throw PeerFailed();
    });
    const auto [least, greatest] = extremes(fingerprint(reductions));
    if (least != greatest) throw std::logic_error("ranks do not reduce the same");
    if (transfers.empty()) return;
    link_->enqueue(transfers, backend.native(queue));
    const Event ended = backend.record(queue);
    link_->wait("combining the ranks by NCCL", [&] { return backend.reached(ended); });
    backend.wait_host(ended);
  });
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& ranks, Backend& backend, const NcclLibrary& library,
                                                     NcclTimes times) {
  return std::make_unique<NcclCommunicator>(ranks, backend, library, times);
}

}  // namespace rowmill
