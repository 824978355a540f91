#pragma once
// What programs share that misbehave on purpose, and how a test's ranks come to an end together.
#include <cstdio>
#include <exception>
#include <optional>

#include "comm/world.hpp"
#include "core/error.hpp"

namespace rowmill::test {

/// Does `work` and agrees on how that went, as run() does.
template <typename Work>
Agreement agree_on(Communicator& ranks, const Work& work) {
  std::optional<Failure> mine;
  try {
    work();
  } catch (const PeerFailed&) {
  } catch (const Error& error) {
    mine = {error.code(), error.row(), error.what()};
    ranks.announce(*mine);
  }
  return ranks.agree(mine, {Heartbeat::Stage::finishing});
}

/// Does `work` on every rank and says how that went, once. The program's exit code. What is no Error is not agreed on.
template <typename Work>
int end_together(World& world, const Work& work) {
  try {
    const Agreement agreement = agree_on(world.communicator(), work);
    if (!agreement.message.empty()) {
      std::fprintf(stderr, "rowmill[%d]: error: %s\n", world.rank(), agreement.message.c_str());
    }
    return static_cast<int>(agreement.code);
  } catch (const std::exception& error) {
    // said before the World ends: the launcher ends all ranks when the first one exits
    std::fprintf(stderr, "rowmill: error: %s\n", error.what());
    throw;
  }
}

/// The main of a program that takes so many words.
inline int probe_main(int argc, char** argv, int words, int (*run)(int, char**)) {
  if (argc != words + 1) return 2;
  try {
    return run(argc, argv);
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace rowmill::test
