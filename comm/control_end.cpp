// How the control plane ends all ranks: one of them says why, in one line.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "comm/backoff.hpp"
#include "comm/control_plane.hpp"

namespace rowmill {
namespace {

using std::chrono::milliseconds;

// Rank r reports a silent rank 0 this much later than rank r - 1 would, so that one line is written.
constexpr milliseconds kReporterStep{100};
// A reporter gives its notice so long to reach the others: at least, and at most where some are slow to take it in, or
// cannot. They wait so long for its abort.
constexpr milliseconds kNoticeTime{50}, kLongestNotice{500}, kAbortGrace{2000};
// A rank that does not come may be silent too; then that is said, and so much sooner.
constexpr milliseconds kSilenceFirst{1000};

// What a signal handler may touch. The one place that cannot be without a global: handlers take no arguments.
volatile sig_atomic_t sigterm_came = 0;

void note_sigterm(int) {
  sigterm_came = 1;
}

}  // namespace

void ControlPlane::watch_for_termination() {
  sigterm_came = 0;
  ::signal(SIGTERM, note_sigterm);
}

ControlPlane::~ControlPlane() {
  ::signal(SIGTERM, SIG_DFL);
}

bool ControlPlane::termination_asked() {
  return sigterm_came != 0;
}

/// Rank r waits for r steps whether a lower rank speaks; what it says comes as a notice, as with a silent rank.
void ControlPlane::check_termination() {
  if (sigterm_came == 0) return;
  if (!terminated_) terminated_ = worked_;
  const bool quiet = mine().leaving != 0 || closing_ || overslept_;
  if (!quiet && worked_ - *terminated_ < (rank() + 1) * kReporterStep) return;
  if (!quiet) say_for_all("ended by SIGTERM, which launchers send when another rank has died");
  ::_exit(128 + SIGTERM);
}

void ControlPlane::check_silence() {
  if (timeout_.count() == 0) return;
  if (!is_hub()) {
    const Clock::duration silence = watch_.silence(0);
    if (silence > timeout_ + (rank() - 1) * kReporterStep) report_silence(0, silence);
    return;
  }
  for (int peer = 1; peer < size(); ++peer) {
    const bool gone = states_[static_cast<std::size_t>(peer)].kind == ControlMessage::Kind::bye;
    if (!gone && watch_.silence(peer) > timeout_) report_silence(peer, watch_.silence(peer));
  }
}

/// Writes a line for all ranks, and lets them know that it is written.
void ControlPlane::say_for_all(const std::string& text) {
  ControlMessage notice;
  notice.kind = ControlMessage::Kind::reporting;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) link_.send(peer, notice);
  }
  const std::string line = "rowmill[" + std::to_string(rank()) + "]: error: " + text + "\n";
  // Written by hand: the line must be seen at every log level, and whole.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) std::perror("rowmill");
  const auto wait_until = [this](Clock::time_point until, bool taken_in_suffices) {
    while (Clock::now() < until && !(taken_in_suffices && link_.idle())) {
      link_.progress();
      std::this_thread::yield();
    }
  };
  const auto said = Clock::now();
  wait_until(said + kNoticeTime, false);
  wait_until(said + kLongestNotice, true);
}

/// One rank writes the line and aborts all; if its abort does not come here, this rank ends quietly by itself.
void ControlPlane::end_quietly() {
  std::this_thread::sleep_for(kAbortGrace);
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitCode::device));
  ::_exit(static_cast<int>(ExitCode::device));
}

void ControlPlane::report_silence(int silent, Clock::duration silence) {
  const ControlMessage& last = states_[static_cast<std::size_t>(silent)];
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", std::chrono::duration<double>(silence).count());
  say_and_abort("rank " + std::to_string(silent) + " has been silent for " + seconds + " s; it was last " +
                describe({last.stage, last.block}));
}

void ControlPlane::say_and_abort(const std::string& text, ExitCode code) {
  say_for_all(text);
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  ::_exit(static_cast<int>(code));
}

/// What a lower rank says meanwhile comes as a notice, and ends this one.
void ControlPlane::end_all(const std::string& text) {
  const auto until = Clock::now() + rank() * kReporterStep;
  for (Backoff backoff; Clock::now() < until; backoff.pause()) work();
  say_and_abort(text);
}

/// A rank may beat and still never come: something that cannot be interrupted, such as its device, holds it. Ranks with
/// rows before a failure's take the time that they need.
void ControlPlane::check_lingering(Clock::time_point since) {
  if (timeout_.count() == 0 || Clock::now() - since <= timeout_ + kSilenceFirst + rank() * kReporterStep) return;
  if (!failure_ || failure_->row) return;
  say_and_abort(failure_->message + "; thereafter not all ranks came to an end in time", failure_->code);
}

}  // namespace rowmill
