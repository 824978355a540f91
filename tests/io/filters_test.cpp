// Undoing filters: each against what its library or a plain encoder makes, at odd sizes; and bytes that are damaged.
#include "io/filters/filters.hpp"

#include "tests/io/filter_frames.hpp"
#include "tests/io/io_support.hpp"

namespace rowmill::test {
namespace {

/// A step with the bytes that it makes.
struct Filter {
  std::string name;
  FilterStep step;
  std::function<Buffer(const Buffer&)> apply;
};

std::vector<Filter> filters_for(std::uint32_t width) {
  std::vector<Filter> filters = {{"gzip", {1, {4}}, [](const Buffer& data) { return gzip(data); }},
                                 {"shuffle", {2, {width}}, [=](const Buffer& data) { return shuffled(data, width); }},
                                 {"fletcher32", {3, {}}, with_fletcher32},
                                 {"lzf", {32000, {4, 261, 0}}, lzf},
                                 {"lz4", {32004, {}}, [](const Buffer& data) { return lz4_frame(data, 1000); }},
                                 {"zstd", {32015, {3}}, [](const Buffer& data) { return zstd_frame(data); }}};
  for (const char* codec : {"blosclz", "lz4", "zlib", "zstd"}) {
    for (const int shuffle : {BLOSC_NOSHUFFLE, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE}) {
      filters.push_back({std::string("blosc ") + codec + std::to_string(shuffle),
                         {32001, {2, 2, width, 0, 5, 1, 0}},
                         [=](const Buffer& data) { return blosc_frame(data, width, codec, shuffle); }});
    }
  }
  for (const std::uint32_t compression : {0U, 2U, 3U}) {
    for (const std::uint32_t block : {8U, 24U, 4096U}) {
      filters.push_back({"bitshuffle " + std::to_string(compression) + " in " + std::to_string(block),
                         {32008, {0, 3, width, block, compression}},
                         [=](const Buffer& data) { return bitshuffle_frame(data, width, block, compression); }});
    }
  }
  // what the library takes for itself: 8 KiB, but 128 elements at least
  const std::size_t own_block = std::max<std::size_t>(8192 / width / 8 * 8, 128);
  filters.push_back({"bitshuffle by itself", {32008, {0, 3, width}}, [=](const Buffer& data) {
                       return bitshuffle_frame(data, width, own_block, 0);
                     }});
  return filters;
}

FilterChain alone(FilterStep step) {
  return FilterChain(std::vector<FilterStep>{std::move(step)});
}

Buffer from_hex(const std::string& hex) {
  Buffer bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

class Filters : public ::testing::Test {
 protected:
  /// Neighbours differ a little, so that it shrinks.
  Buffer data_of(std::size_t bytes) {
    Buffer data(bytes);
    unsigned value = static_cast<unsigned>(random_());
    for (std::size_t i = 0; i < bytes; ++i) {
      if (i % 4 == 0) value += static_cast<unsigned>(random_() % 3);
      data[i] = static_cast<std::byte>(value >> 8 * (i % 4));
    }
    return data;
  }

  Buffer decode(const FilterChain& chain, const Buffer& stored, std::size_t bytes, std::uint32_t mask = 0) {
    const PoisonedBuffer to(bytes);
    // a heap block of just this size, so that a sanitizer sees a read behind it
    const Buffer exact(stored);
    try {
      chain.decode(exact, mask, to.span(), scratch_);
    } catch (const FilterError&) {
      EXPECT_TRUE(to.guard_is_whole()) << "seed " << seed_;
      throw;
    }
    EXPECT_TRUE(to.guard_is_whole()) << "seed " << seed_;
    return {to.span().begin(), to.span().end()};
  }

  /// The text of the error; empty if there is none.
  std::string error_of_decoding(const FilterChain& chain, const Buffer& stored, std::size_t bytes) {
    try {
      decode(chain, stored, bytes);
    } catch (const FilterError& e) {
      return e.what();
    }
    return "";
  }
  std::string error_of_decoding(const FilterStep& step, const Buffer& stored, std::size_t bytes) {
    return error_of_decoding(alone(step), stored, bytes);
  }

  std::uint64_t seed_ = fresh_seed();
  std::mt19937_64 random_{seed_};
  MemoryPool pool_;
  FilterScratch scratch_{pool_};
};

TEST_F(Filters, EachFilter_AtOddSizesAndWidths_GivesBackTheData) {
  for (const std::uint32_t width : {1U, 2U, 3U, 4U, 8U, 12U, 16U, 100U}) {
    for (const Filter& filter : filters_for(width)) {
      const FilterChain chain = alone(filter.step);
      for (const std::size_t count : {1U, 7U, 8U, 9U, 63U, 64U, 65U, 127U, 1000U, 4103U}) {
        const Buffer data = data_of(count * width);
        EXPECT_EQ(decode(chain, filter.apply(data), data.size()), data)
            << filter.name << ", " << count << " elements of " << width << ", seed " << seed_;
      }
    }
  }
}

TEST_F(Filters, BytesBehindTheLastWholeElement_AreLeftByShuffle) {
  for (const std::size_t bytes : {1U, 3U, 5U, 41U, 4099U}) {
    const Buffer data = data_of(bytes);
    EXPECT_EQ(decode(alone({2, {4}}), shuffled(data, 4), bytes), data);
    EXPECT_EQ(decode(alone({2, {100000}}), data, bytes), data);
  }
}

TEST_F(Filters, BitshuffleOfItsOwnLibrary_IsUndone) {
  // by Debian's bitshuffle 0.3.5: numpy.arange(21, dtype='<u2') * 1031 + 7, bitshuffle(a, 8) and compress_lz4(a, 16);
  // in front of the latter the head that its HDF5 filter writes
  const Buffer data = from_hex("07000e0415081c0c23102a143118381c3f2046244d28542c5b3062346938703c77407e4485488c4c9350");
  EXPECT_EQ(decode(alone({32008, {0, 3, 2, 8, 0}}),
                   from_hex("55330faaccf000000000aaccf000000055330f5599e1fe000000aaccf0ff000077407e4485488c4c9350"),
                   data.size()),
            data);
  EXPECT_EQ(decode(alone({32008, {0, 3, 2, 16, 2}}),
                   from_hex("000000000000002a00000020"
                            "00000020f100555533330f0faa55cc99f0e100fe000100c0aaaaccccf0f000ff0000000077407e4485488c4c93"
                            "50"),
                   data.size()),
            data);
}

TEST_F(Filters, ChainsWithAnyStepsMasked_GiveBackTheData) {
  const std::vector<Filter> all = filters_for(4);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<FilterStep> steps;
    const auto mask = static_cast<std::uint32_t>(pick(random_, 0, 15)) & static_cast<std::uint32_t>(random_());
    const Buffer data = data_of(static_cast<std::size_t>(4 * pick(random_, 1, 3000)));
    Buffer stored = data;
    std::string names;
    const std::int64_t length = pick(random_, 0, 4);
    for (std::int64_t i = 0; i < length; ++i) {
      const Filter& filter = all[static_cast<std::size_t>(pick(random_, 0, static_cast<std::int64_t>(all.size()) - 1))];
      const bool whole_elements = stored.size() % 4 == 0 || filter.step.id != 32008;
      const bool masked = (mask >> i & 1) != 0;
      // bitshuffle takes whole elements only; compressed bytes are rarely that
      steps.push_back(whole_elements || masked ? filter.step : FilterStep{3, {}});
      if (!masked) stored = whole_elements ? filter.apply(stored) : with_fletcher32(stored);
      names += filter.name + (masked ? " (masked), " : ", ");
    }
    EXPECT_EQ(decode(FilterChain(steps), stored, data.size(), mask), data) << names << "seed " << seed_;
  }
}

TEST_F(Filters, StepsThatGrowTheData_BeforeOthers_AreUndone) {
  Buffer data(100000);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random_());
  const Buffer grown = bitshuffle_frame(data, 1, 8, 2);
  ASSERT_GT(grown.size(), data.size() * 3 / 2);
  EXPECT_EQ(decode(FilterChain({{32008, {0, 3, 1, 8, 2}}, {1, {4}}}), gzip(grown), data.size()), data);
}

TEST_F(Filters, AnotherSizeThanIsStored_IsAnError) {
  for (const Filter& filter : filters_for(4)) {
    const Buffer data = data_of(4096), stored = filter.apply(data);
    for (const std::size_t bytes : {0U, 4U, 4092U, 4095U, 4097U, 4100U, 8192U}) {
      EXPECT_NE(error_of_decoding(filter.step, stored, bytes), "") << filter.name << " into " << bytes;
    }
    EXPECT_NE(error_of_decoding(FilterChain({{2, {4}}, filter.step}), stored, 4000), "") << filter.name;
  }
}

TEST_F(Filters, TruncatedBytes_AreAnErrorThatNamesTheFilter) {
  for (const Filter& filter : filters_for(4)) {
    const Buffer data = data_of(840), stored = filter.apply(data);
    for (std::size_t bytes = 0; bytes < stored.size(); ++bytes) {
      const Buffer less(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(bytes));
      const std::string error = error_of_decoding(filter.step, less, data.size());
      EXPECT_NE(error, "") << filter.name << " of " << bytes << " bytes, seed " << seed_;
      EXPECT_TRUE(error.starts_with("filter " + std::to_string(filter.step.id)) || error.starts_with("it holds"))
          << error;
    }
  }
}

TEST_F(Filters, DamagedBytes_NeverLeadOutsideTheBuffers) {
  for (const Filter& filter : filters_for(4)) {
    const Buffer data = data_of(1000), stored = filter.apply(data);
    const FilterChain chain = alone(filter.step);
    for (int trial = 0; trial < 300; ++trial) {
      Buffer damaged = stored;
      for (std::int64_t i = pick(random_, 1, 4); i > 0; --i) {
        damaged[static_cast<std::size_t>(pick(random_, 0, static_cast<std::int64_t>(damaged.size()) - 1))] =
            static_cast<std::byte>(random_());
      }
      error_of_decoding(chain, damaged, data.size());
    }
  }
}

TEST_F(Filters, OneBitChanged_IsFoundByFletcher32) {
  const Buffer data = data_of(501), stored = with_fletcher32(data);
  const FilterChain chain = alone({3, {}});
  for (std::size_t bit = 0; bit < 8 * stored.size(); ++bit) {
    Buffer damaged = stored;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_NE(error_of_decoding(chain, damaged, data.size()).find("checksum"), std::string::npos) << bit;
  }
}

TEST_F(Filters, Fletcher32_OfLongRunsOfExtremes_IsTheDefinition) {
  const FilterChain chain = alone({3, {}});
  for (const std::size_t bytes : {2U, 3U, 4095U, 4096U, 4097U, 8192U, 300001U}) {
    for (const int value : {0, 1, 0x80, 0xff}) {
      const Buffer data(bytes, static_cast<std::byte>(value));
      EXPECT_EQ(decode(chain, with_fletcher32(data), bytes), data) << bytes << " of " << value;
    }
    Buffer random(bytes);
    for (std::byte& byte : random) byte = static_cast<std::byte>(random_());
    EXPECT_EQ(decode(chain, with_fletcher32(random), bytes), random) << bytes << ", seed " << seed_;
  }
}

TEST_F(Filters, Fletcher32OfOldHdf5_IsReadToo) {
  const Buffer data = data_of(100);
  Buffer stored = with_fletcher32(data);
  std::swap(stored[100], stored[101]);
  std::swap(stored[102], stored[103]);
  EXPECT_EQ(decode(alone({3, {}}), stored, 100), data);
}

TEST_F(Filters, BytesBehindAFrame_AreLeftAloneAsHdf5Does) {
  const Buffer data = data_of(1000), more = from_hex("00112233445566778899");
  EXPECT_EQ(decode(alone({1, {4}}), joined(gzip(data), more), 1000), data);
  EXPECT_EQ(decode(alone({1, {4}}), joined(gzip(data), gzip(data)), 1000), data);
  EXPECT_EQ(decode(alone({32004, {}}), joined(lz4_frame(data, 300), more), 1000), data);
  EXPECT_EQ(decode(alone({32001, {}}), joined(blosc_frame(data, 4, "lz4", 1), more), 1000), data);
}

TEST_F(Filters, HostileHeads_AreErrors) {
  const std::string huge = "ffffffffffffffff", thousand = "00000000000003e8";
  EXPECT_NE(error_of_decoding({32004, {}}, from_hex(huge + "00000100" + "00000001" + "00"), 1000), "");
  EXPECT_NE(error_of_decoding({32004, {}}, from_hex(thousand + "00000000" + "00000000"), 1000), "");
  EXPECT_NE(error_of_decoding({32004, {}}, from_hex(thousand + "000003e8" + "ffffffff" + "00"), 1000), "");
  EXPECT_NE(error_of_decoding({32004, {}}, from_hex(thousand + "ffffffff" + "000003e7" + "00"), 1000), "");
  for (const std::uint32_t compression : {2U, 3U}) {
    const FilterStep step{32008, {0, 3, 4, 0, compression}};
    EXPECT_NE(error_of_decoding(step, from_hex(huge + "00000100" + "00000001" + "00"), 1000), "");
    EXPECT_NE(error_of_decoding(step, from_hex(thousand + "00000004" + "00000001" + "00"), 1000), "");
    EXPECT_NE(error_of_decoding(step, from_hex(thousand + "ffffffe0" + "ffffffff" + "00"), 1000), "");
    EXPECT_NE(error_of_decoding(step, from_hex("00000000000003e7" + std::string("00000100")), 999), "");
  }
  EXPECT_NE(error_of_decoding({32001, {}}, from_hex("0201010400000000ffffff7f10000000ffffffff"), 1000), "");
  EXPECT_NE(error_of_decoding({32001, {}}, from_hex("02010104ffffffff0004000014000000ffffffff"), 1000), "");
  EXPECT_NE(error_of_decoding({4, {141, 32, 32, 256}}, from_hex("ffffffff" + std::string("0011223344")), 1000), "");
}

TEST_F(Filters, StorageChunksBehindOneAnother_TakeNoNewMemory) {
  for (const Filter& filter : filters_for(4)) {
    MemoryPool pool;
    FilterScratch scratch(pool);
    const FilterChain chain({{2, {4}}, {3, {}}, filter.step, {1, {4}}});
    const Buffer data = data_of(4096), stored = gzip(filter.apply(with_fletcher32(shuffled(data, 4))));
    Buffer to(data.size());
    chain.decode(stored, 0, to, scratch);
    const std::int64_t before = pool.system_allocations();
    for (int i = 0; i < 5; ++i) chain.decode(stored, 0, to, scratch);
    EXPECT_EQ(pool.system_allocations(), before) << filter.name;
    EXPECT_EQ(to, data) << filter.name;
    // the pool rounds each of at most three buffers up
    EXPECT_LE(pool.use().high_water, static_cast<std::int64_t>(chain.scratch_bytes(data.size())) + 3 * 4096);
  }
}

TEST_F(Filters, FiltersThatAreNotDecoded_AreNamedWithTheirNumber) {
  EXPECT_EQ(why_not_decoded({5, {}}), "filter 5 (n-bit) is not decoded here");
  EXPECT_EQ(why_not_decoded({6, {}}), "filter 6 (scale-offset) is not decoded here");
  EXPECT_EQ(why_not_decoded({32026, {}}), "filter 32026 (blosc2) is not decoded here");
  EXPECT_EQ(why_not_decoded({4711, {}}), "filter 4711 (unknown) is not decoded here");
  EXPECT_THROW(FilterChain({{1, {4}}, {6, {}}}), FilterError);
  EXPECT_THROW(FilterChain(std::vector<FilterStep>(33, {1, {4}})), FilterError);
}

TEST_F(Filters, HostileClientData_IsRefused) {
  for (const FilterStep& step : std::vector<FilterStep>{{2, {}},
                                                        {2, {0}},
                                                        {4, {}},
                                                        {4, {141, 0, 32, 256}},
                                                        {4, {141, 33, 32, 256}},
                                                        {4, {141, 7, 32, 256}},
                                                        {4, {141, 32, 0, 256}},
                                                        {4, {141, 32, 25, 256}},
                                                        {4, {141, 32, 65, 256}},
                                                        {4, {141, 32, 32, 0}},
                                                        {4, {141, 32, 32, 31}},
                                                        {4, {141, 32, 32, 4097}},
                                                        {4, {141, 2, 32, 258}},
                                                        {32008, {0, 3}},
                                                        {32008, {0, 3, 0}},
                                                        {32008, {0, 3, 0xffffffff}},
                                                        {32008, {0, 3, 4, 12}},
                                                        {32008, {0, 3, 4, 8, 1}}}) {
    EXPECT_NE(why_not_decoded(step), "") << step.id;
    EXPECT_THROW(alone(step), FilterError) << step.id;
  }
}

}  // namespace
}  // namespace rowmill::test
