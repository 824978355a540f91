#include "comm/control_plane.hpp"

#include <algorithm>
#include <utility>

#include "comm/backoff.hpp"

namespace rowmill {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWorkInterval{1};

bool worse(const ControlMessage& a, const ControlMessage& b) {
  if (a.failed != b.failed) return a.failed != 0;
  if (a.has_row != b.has_row) return a.has_row == 0;
  return a.has_row != 0 && a.row < b.row;
}

void set_failure(ControlMessage& state, const Failure& failure) {
  state.failed = 1;
  state.code = static_cast<std::int32_t>(failure.code);
  state.has_row = failure.row ? 1 : 0;
  state.row = failure.row.value_or(0);
}

}  // namespace

ControlPlane::ControlPlane(milliseconds timeout)
    : watch_(link_.size(), Clock::now()), states_(static_cast<std::size_t>(link_.size())), worked_(Clock::now()) {
  set_timeout(timeout);
  verdict_.kind = ControlMessage::Kind::verdict;
  watch_for_termination();
}

void ControlPlane::set_timeout(milliseconds timeout) {
  timeout_ = timeout;
  const milliseconds slowest{500};
  interval_ = timeout.count() == 0 ? slowest : std::clamp(timeout / 8, milliseconds{5}, slowest);
}

void ControlPlane::poll() {
  if (Clock::now() - worked_ >= kWorkInterval) work();
}

void ControlPlane::work() {
  const Clock::time_point now = Clock::now();
  // A rank that was stopped for so long has been named as silent, and is woken up only to be ended.
  if (timeout_.count() != 0 && now - worked_ >= timeout_ / 2) overslept_ = true;
  worked_ = now;
  watch_.look(worked_, timeout_.count() == 0 ? Clock::duration{interval_} : Clock::duration{timeout_} / 4);
  link_.progress();
  while (const auto message = link_.receive()) take_in(message->first, message->second);
  if (!closing_ && (changed_ || worked_ - published_ >= interval_)) publish();
  check_termination();
  check_silence();
}

void ControlPlane::take_in(int from, const ControlMessage& message) {
  watch_.heard(from);
  switch (message.kind) {
    case ControlMessage::Kind::status:
      states_[static_cast<std::size_t>(from)] = message;
      count_states();
      break;
    case ControlMessage::Kind::verdict:
      states_[0] = message;
      take_verdict(message);
      break;
    case ControlMessage::Kind::reporting:
      end_quietly();
    case ControlMessage::Kind::bye:
      states_[static_cast<std::size_t>(from)] = message;
      ++byes_;
      break;
  }
}

void ControlPlane::take_verdict(const ControlMessage& message) {
  if (message.epoch == mine().epoch + 1) enter_epoch(message);
  verdict_ = message;
}

/// Rank 0: what follows from the states of all ranks.
void ControlPlane::count_states() {
  if (!is_hub()) return;
  ControlMessage next = verdict_;
  next.failed = next.leaving = next.stop = 0;
  bool all_agree = true;
  for (const ControlMessage& state : states_) {
    // States of ranks that have not heard of the last agreement yet speak of what is settled.
    const bool current = state.epoch == mine().epoch;
    all_agree = all_agree && current && state.agreeing != 0;
    if (!current) continue;
    next.stop |= state.stop;
    if (state.leaving != 0) {
      next.transfers = next.leaving != 0 ? std::min(next.transfers, state.transfers) : state.transfers;
      next.leaving = 1;
    }
    if (worse(state, next)) {
      next.failed = state.failed;
      next.has_row = state.has_row;
      next.row = state.row;
    }
  }
  if (worse(next, verdict_) || next.stop != verdict_.stop || next.leaving != verdict_.leaving ||
      next.transfers != verdict_.transfers) {
    changed_ = true;
  }
  verdict_ = next;
  if (all_agree) conclude();
}

/// Rank 0, when all ranks agree or leave: the outcome.
void ControlPlane::conclude() {
  const auto leaves = [](const ControlMessage& state) { return state.leaving != 0; };
  const bool all_left = std::all_of(states_.begin(), states_.end(), leaves);
  ControlMessage outcome;
  outcome.kind = ControlMessage::Kind::verdict;
  outcome.epoch = mine().epoch + 1;
  outcome.all_left = all_left ? 1 : 0;
  outcome.some_left = std::any_of(states_.begin(), states_.end(), leaves) ? 1 : 0;
  ControlMessage worst;
  for (int from = 0; from < size(); ++from) {
    ControlMessage state = states_[static_cast<std::size_t>(from)];
    if (state.leaving != 0 && !all_left && state.failed == 0) set_failure(state, Failure{ExitCode::failed, {}, {}});
    if (!worse(state, worst)) continue;
    worst = state;
    outcome.outcome_rank = from;
    outcome.outcome_code = state.code;
  }
  enter_epoch(outcome);
  verdict_ = outcome;
  changed_ = true;
}

/// The agreement is settled: failures before it are forgotten.
void ControlPlane::enter_epoch(const ControlMessage& outcome) {
  mine() = ControlMessage{};
  mine().epoch = outcome.epoch;
}

void ControlPlane::publish() {
  ControlMessage& message = is_hub() ? verdict_ : mine();
  message.stage = heartbeat_.stage;
  message.block = heartbeat_.block;
  if (is_hub()) {
    for (int peer = 1; peer < size(); ++peer) link_.send(peer, message);
  } else {
    link_.send(0, message);
  }
  published_ = worked_;
  changed_ = false;
}

Verdict ControlPlane::verdict() const {
  ControlMessage worst = mine();
  if (worse(verdict_, worst)) worst = verdict_;
  const bool stop = mine().stop != 0 || verdict_.stop != 0;
  if (worst.failed == 0) return {false, std::nullopt, stop};
  if (worst.has_row == 0) return {true, std::nullopt, stop};
  return {true, worst.row, stop};
}

void ControlPlane::announce(const Failure& failure) {
  if (failure_ && !precedes(failure, *failure_)) return;
  failure_ = failure;
  set_failure(mine(), failure);
  changed_ = true;
  count_states();
  work();
}

void ControlPlane::request_stop() {
  mine().stop = 1;
  changed_ = true;
  count_states();
  work();
}

Agreement ControlPlane::agree(const std::optional<Failure>& failure) {
  if (failure) announce(*failure);
  const std::int64_t epoch = mine().epoch;
  mine().agreeing = 1;
  changed_ = true;
  count_states();
  const Clock::time_point began = Clock::now();
  for (Backoff backoff; mine().epoch == epoch; backoff.pause()) {
    work();
    check_lingering(began);
  }
  if (is_hub()) work();  // the outcome goes out at once
  const std::optional<Failure> announced = std::exchange(failure_, std::nullopt);
  const int failed_rank = verdict_.outcome_rank;
  if (failed_rank < 0) return {};
  return {false, static_cast<ExitCode>(verdict_.outcome_code), failed_rank,
          failed_rank == rank() && announced ? announced->message : std::string()};
}

void ControlPlane::leave() {
  do {
    const std::int64_t epoch = mine().epoch;
    mine().agreeing = mine().leaving = 1;
    changed_ = true;
    count_states();
    for (Backoff backoff; mine().epoch == epoch; backoff.pause()) work();
  } while (verdict_.all_left == 0);
  flush();
}

/// Everything sent is taken in, so that MPI can be ended.
void ControlPlane::flush() {
  if (is_hub() && changed_) publish();
  closing_ = true;
  for (Backoff backoff; !link_.idle(); backoff.pause()) work();
  if (is_hub()) {
    for (Backoff backoff; byes_ < size() - 1; backoff.pause()) work();
    return;
  }
  ControlMessage bye;
  bye.kind = ControlMessage::Kind::bye;
  link_.send(0, bye);
  for (Backoff backoff; !link_.idle(); backoff.pause()) work();
}

}  // namespace rowmill
