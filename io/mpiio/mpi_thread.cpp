#include "io/mpiio/mpi_thread.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"

namespace rowmill {

namespace {

using Clock = std::chrono::steady_clock;

/// Between two looks at the other ranks.
constexpr std::chrono::milliseconds kLongestServing{20};
constexpr std::chrono::microseconds kVotePause{50};

enum Vote : int { wants_nothing = 0, wants_round = 1, leaves = 2 };

std::exception_ptr ended() {
  return std::make_exception_ptr(Error(ExitCode::failed, "reading has been ended"));
}

}  // namespace

MpiThread::MpiThread(Mode mode, std::function<void()> while_waiting)
    : mode_(mode), while_waiting_(std::move(while_waiting)) {}

void MpiThread::run(const std::function<void()>& work) {
  ask([&work](bool) { work(); }, false);
}

void MpiThread::read(const Reading& work) {
  ask(work, true);
}

void MpiThread::ask(Reading work, bool may_go_in_round) {
  if (std::this_thread::get_id() == own_thread_) {
    if (may_go_in_round && rounds_go_on()) throw std::logic_error("the MPI thread asks itself for a round");
    return work(false);
  }
  auto request = std::make_unique<Request>();
  request->work = std::move(work);
  request->may_go_in_round = may_go_in_round;
  std::future<void> done = request->done.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || (may_go_in_round && refuses_reading_)) std::rethrow_exception(ended());
    requests_.push_back(std::move(request));
  }
  asked_.notify_one();
  done.get();
}

void MpiThread::destroy_later(std::shared_ptr<void> object) {
  const std::lock_guard lock(mutex_);
  old_.push_back(std::move(object));
}

/// The oldest request of its kind.
std::unique_ptr<MpiThread::Request> MpiThread::next(bool in_round) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const auto& request) {
    return (request->may_go_in_round && rounds_go_on()) == in_round;
  });
  if (found == requests_.end()) return nullptr;
  std::unique_ptr<Request> request = std::move(*found);
  requests_.erase(found);
  return request;
}

std::exception_ptr MpiThread::done(Request& request, bool in_round) {
  try {
    request.work(in_round);
    request.done.set_value();
    return nullptr;
  } catch (...) {
    request.done.set_exception(std::current_exception());
    return std::current_exception();
  }
}

bool MpiThread::run_one() {
  std::vector<std::shared_ptr<void>> old;
  {
    const std::lock_guard lock(mutex_);
    old.swap(old_);
  }
  const auto request = next(false);
  if (request) done(*request, false);
  return request != nullptr;
}

void MpiThread::serve(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + kLongestServing;
  for (auto busy = Clock::now();;) {
    const bool ran = run_one(), advanced = advance();
    const auto now = Clock::now();
    if (ran || advanced) busy = now;
    if (now >= until || now - busy >= patience) return;
    if (!ran && !advanced) nap(patience);
  }
}

/// Until something is asked for; shortly while a vote is under way, which nobody signals the end of.
void MpiThread::nap(std::chrono::milliseconds patience) {
  if (ballot_ && ballot_->under_way()) {
    std::this_thread::sleep_for(kVotePause);
    return;
  }
  std::unique_lock lock(mutex_);
  asked_.wait_for(lock, patience, [this] { return !requests_.empty(); });
}

void MpiThread::refuse(bool also_calls) noexcept {
  std::deque<std::unique_ptr<Request>> refused;
  {
    const std::lock_guard lock(mutex_);
    refuses_reading_ = true;
    closed_ = closed_ || also_calls;
    for (auto& request : requests_) {
      if (also_calls || request->may_go_in_round) refused.push_back(std::move(request));
    }
    std::erase(requests_, nullptr);
  }
  for (auto& request : refused) request->done.set_exception(ended());
}

void MpiThread::close() noexcept {
  refuse(true);
}

void MpiThread::read_in_rounds(std::function<void()> take_part) {
  ballot_ = std::make_unique<Ballot>(while_waiting_);
  take_part_ = std::move(take_part);
}

void MpiThread::begin_pass() {
  in_pass_ = true;
  ending_ = over_ = false;
  const std::lock_guard lock(mutex_);
  refuses_reading_ = false;
}

/// False where there is nothing to vote yet.
bool MpiThread::give_vote() {
  bool asked = false;
  {
    const std::lock_guard lock(mutex_);
    asked = std::any_of(requests_.begin(), requests_.end(), [](const auto& r) { return r->may_go_in_round; });
  }
  if (!asked && !ending_) return false;
  ballot_->vote(asked ? wants_round : wants_nothing);
  return true;
}

void MpiThread::play_round() {
  const auto guarded = guard();
  if (const auto request = next(true)) {
    done(*request, true);
    return;
  }
  try {
    take_part_();
  } catch (...) {
    round_error_ = std::current_exception();
  }
}

/// Moves rounds on as far as that goes without waiting. True if that was a step.
bool MpiThread::advance() {
  if (!rounds_go_on()) return false;
  if (!ballot_->under_way() && !give_vote()) return false;
  const std::optional<int> result = ballot_->result();
  if (!result) return false;
  if (*result == wants_round) {
    play_round();
    return true;
  }
  over_ = true;
  left_ = *result == leaves;
  if (left_) refuse(false);
  return true;
}

void MpiThread::end_pass(const std::function<void()>& poll) {
  if (ballot_) {
    refuse(false);
    ending_ = true;
    while (rounds_go_on()) {
      if (!advance()) std::this_thread::sleep_for(kVotePause);
      poll();
    }
  }
  in_pass_ = false;
  if (round_error_) std::rethrow_exception(std::exchange(round_error_, nullptr));
}

void MpiThread::leave(const std::function<void()>& poll) {
  close();
  if (!ballot_ || left_) return;
  while (ballot_->under_way()) {
    const std::optional<int> result = ballot_->result();
    if (!result) {
      poll();
      std::this_thread::sleep_for(kVotePause);
    } else if (*result == wants_round) {
      play_round();
    } else if (*result == leaves) {
      return;
    }
  }
  ballot_->vote(leaves);
  left_ = over_ = true;
}

}  // namespace rowmill
