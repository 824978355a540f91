#pragma once
// How the ranks of a parallel writer meet: without MPI where there is one, and never asleep where there are several.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace rowmill {

class RankMeeting {
 public:
  /// `alone`: one rank, no MPI. Else collective over MPI_COMM_WORLD. `while_waiting` is called in every wait and may
  /// throw; after that the meeting must not be used.
  RankMeeting(bool alone, std::function<void()> while_waiting);
  RankMeeting(const RankMeeting&) = delete;
  RankMeeting& operator=(const RankMeeting&) = delete;
  ~RankMeeting();

  bool alone() const;
  int rank() const;

  /// Collective: if any rank brings an error, all ranks throw that of the lowest rank.
  void throw_if_any(const std::optional<Error>& mine);
  /// Collective: the text of rank 0 on every rank.
  std::string text_of_rank_zero(std::string text);
  /// Collective: the sum over ranks.
  std::int64_t sum(std::int64_t mine);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowmill
