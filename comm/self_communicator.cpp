#include <utility>

#include "comm/communicator.hpp"
#include "comm/reducible.hpp"

namespace rowmill {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  void reduce(Backend& backend, void* /*data*/, std::int64_t count, ElementKind kind, Combine how,
              Queue queue) override {
    check_reducible(kind, how, count);
    backend.wait_host(backend.record(queue));
    throw_if_failed();
  }

  void broadcast(std::vector<std::byte>& /*bytes*/, int /*root*/) override { throw_if_failed(); }

  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& bytes) override {
    throw_if_failed();
    return {bytes};
  }

  Verdict poll(const Heartbeat& /*mine*/) override {
    if (!failure_) return {false, std::nullopt, stop_};
    return {true, failure_->row, stop_};
  }

  void announce(const Failure& failure) override {
    if (!failure_ || precedes(failure, *failure_)) failure_ = failure;
  }

  void request_stop() override { stop_ = true; }

  Agreement agree(const std::optional<Failure>& mine, const Heartbeat& /*heartbeat*/) override {
    if (mine) announce(*mine);
    stop_ = false;
    const std::optional<Failure> failure = std::exchange(failure_, std::nullopt);
    if (!failure) return {};
    return {false, failure->code, 0, failure->message};
  }

 private:
  void throw_if_failed() const {
    if (failure_) throw PeerFailed();
  }

  std::optional<Failure> failure_;
  bool stop_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace rowmill
