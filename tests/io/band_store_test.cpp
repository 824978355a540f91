// Bands that several threads share: decoded once, in order, in any order, with errors.
#include "io/band_store.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace rowmill::test {
namespace {

constexpr std::int64_t kCells = 7, kRows = 10, kCellBytes = 64;

/// Places in memory. Each cell of band b is filled with the byte b + cell.
struct Counted {
  std::vector<std::atomic<int>> decoded;
  std::vector<std::vector<std::byte>> places;
  Counted(std::int64_t bands, int places_allowed)
      : decoded(static_cast<std::size_t>(bands * kCells)),
        places(static_cast<std::size_t>(places_allowed), std::vector<std::byte>(kCells * kCellBytes)) {}

  void fill(std::int64_t band, std::int64_t first, std::int64_t end, std::int64_t place) {
    for (std::int64_t cell = first; cell < end; ++cell) {
      ++decoded[static_cast<std::size_t>(band * kCells + cell)];
      std::memset(places.at(static_cast<std::size_t>(place)).data() + cell * kCellBytes, static_cast<int>(band + cell),
                  kCellBytes);
    }
  }
  BandStore::Decode decode() {
    return [this](std::int64_t band, std::int64_t first, std::int64_t end, std::int64_t place) {
      fill(band, first, end, place);
    };
  }
  bool holds(std::int64_t place, std::int64_t band) const {
    const auto& rows = places.at(static_cast<std::size_t>(place));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != static_cast<std::byte>(band + static_cast<std::int64_t>(i) / kCellBytes)) return false;
    }
    return true;
  }
};

TEST(BandStore, BlocksInOrderByAnyNumberOfThreads_DecodeEachCellOnceAPass) {
  constexpr std::int64_t bands = 20;
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t at_once : {1, 3, 100}) {
      Counted counted(bands, threads + 2);
      BandStore store({kCells, at_once}, counted.decode());
      store.allow(threads + 2, bands);
      for (int pass = 1; pass <= 2; ++pass) {
        std::atomic<std::int64_t> next{0};
        std::atomic<int> wrong{0};
        const auto read = [&] {
          for (std::int64_t row = next++; row < bands * kRows; row = next++) {
            store.use(row / kRows, kRows, 1,
                      [&](std::int64_t place) { wrong += counted.holds(place, row / kRows) ? 0 : 1; });
          }
        };
        std::vector<std::thread> readers;
        for (int t = 0; t < threads; ++t) readers.emplace_back(read);
        for (std::thread& reader : readers) reader.join();
        EXPECT_EQ(wrong, 0);
        if (threads > 1) continue;  // a thread may be held up for so long that its band has to go
        for (const auto& times : counted.decoded) EXPECT_LE(times, pass);
      }
    }
  }
}

TEST(BandStore, InAnyOrderWithRoomForOne_IsRightAllTheSame) {
  Counted counted(9, 1);
  BandStore store({kCells, 2}, counted.decode());
  store.allow(1, 9);
  std::vector<std::future<bool>> readers;
  for (unsigned t = 0; t < 4; ++t) {
    readers.push_back(std::async(std::launch::async, [&, t] {
      std::mt19937 random(t);
      bool right = true;
      for (int i = 0; i < 200; ++i) {
        const std::int64_t band = static_cast<std::int64_t>(random() % 9);
        store.use(band, kRows, 1, [&](std::int64_t place) { right = right && counted.holds(place, band); });
      }
      return right;
    }));
  }
  for (auto& reader : readers) EXPECT_TRUE(reader.get());
}

TEST(BandStore, AnError_IsThrownToAllWhoWantThatBandAndNobodyElse) {
  std::atomic<bool> broken{true};
  Counted counted(3, 3);
  BandStore store({kCells, 1}, [&](std::int64_t band, std::int64_t first, std::int64_t end, std::int64_t place) {
    if (band == 1 && first == 3 && broken) throw std::runtime_error("cell 3");
    counted.fill(band, first, end, place);
  });
  store.allow(3, 3);
  const auto use = [&](std::int64_t band) {
    bool right = false;
    store.use(band, kRows, kRows, [&](std::int64_t place) { right = counted.holds(place, band); });
    return right;
  };
  EXPECT_TRUE(use(0));
  std::vector<std::future<bool>> readers;
  for (int t = 0; t < 3; ++t) readers.push_back(std::async(std::launch::async, use, 1));
  for (auto& reader : readers) EXPECT_THROW(reader.get(), std::runtime_error);
  EXPECT_TRUE(use(2));
  broken = false;
  EXPECT_TRUE(use(1));
  EXPECT_THROW(store.use(1, kRows, 1, [](std::int64_t) { throw std::runtime_error("of who takes"); }),
               std::runtime_error);
  EXPECT_TRUE(use(1));
}

}  // namespace
}  // namespace rowmill::test
