// Undoing filters: storage chunks that HDF5 wrote, as they lie in the file.
#include "io/filters/filters.hpp"
#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

std::vector<FilterStep> steps_of(hid_t dataset) {
  const hid_t list = H5Dget_create_plist(dataset);
  std::vector<FilterStep> steps(static_cast<std::size_t>(H5Pget_nfilters(list)));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    unsigned flags = 0, config = 0, values[8] = {};
    std::size_t count = 8;
    steps[i].id = static_cast<std::uint32_t>(
        H5Pget_filter2(list, static_cast<unsigned>(i), &flags, &count, values, 0, nullptr, &config));
    steps[i].values.assign(values, values + count);
  }
  H5Pclose(list);
  return steps;
}

bool writes_szip() {
  unsigned config = 0;
  return H5Zget_filter_info(H5Z_FILTER_SZIP, &config) >= 0 && (config & H5Z_FILTER_CONFIG_ENCODE_ENABLED) != 0;
}

class FiltersOfHdf5 : public ::testing::Test {
 protected:
  /// Values that shrink: small steps.
  Model smooth_model(std::vector<std::int64_t> shape, ElementType type) {
    Model model = random_model(random_, std::move(shape), type);
    for (std::size_t i = 0; i < model.bytes.size(); ++i) {
      if (i >= model.width() && random_() % 8 != 0) model.bytes[i] = model.bytes[i - model.width()];
    }
    return model;
  }

  /// Values that szip shrinks whatever it makes of neighbours: small ones.
  Model small_model(std::vector<std::int64_t> shape, ElementType type) {
    Model model = random_model(random_, std::move(shape), type);
    for (std::byte& byte : model.bytes) byte = random_() % 8 == 0 ? byte & std::byte{3} : std::byte{0};
    return model;
  }

  /// Decodes every storage chunk of a one-dimensional data set. Returns the greatest filter mask.
  std::uint32_t expect_decoded(const Model& model, const Storage& storage) {
    Model written = model;
    write_model(folder_ / "a.h5", written, storage);
    const hid_t file = H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/X", H5P_DEFAULT);
    const FilterChain chain(steps_of(dataset));
    const std::size_t chunk_bytes = static_cast<std::size_t>(storage.chunk[0]) * model.width();
    std::uint32_t greatest = 0;
    for (std::size_t at = 0; at < model.bytes.size(); at += chunk_bytes) {
      const hsize_t offset = at / model.width();
      hsize_t stored_bytes = 0;
      EXPECT_GE(H5Dget_chunk_storage_size(dataset, &offset, &stored_bytes), 0);
      std::vector<std::byte> stored(stored_bytes);
      std::uint32_t mask = 0;
      EXPECT_GE(H5Dread_chunk(dataset, H5P_DEFAULT, &offset, &mask, stored.data()), 0);
      greatest = std::max(greatest, mask);
      const PoisonedBuffer to(chunk_bytes);
      chain.decode(stored, mask, to.span(), scratch_);
      EXPECT_TRUE(to.guard_is_whole());
      const std::size_t within = std::min(chunk_bytes, model.bytes.size() - at);
      EXPECT_EQ(std::memcmp(to.span().data(), model.bytes.data() + at, within), 0)
          << name_of(model.type.dtype) << " at " << at << ", seed " << seed_;
    }
    H5Dclose(dataset);
    H5Fclose(file);
    return greatest;
  }

  ScratchFolder folder_;
  std::uint64_t seed_ = fresh_seed();
  std::mt19937_64 random_{seed_};
  MemoryPool pool_;
  FilterScratch scratch_{pool_};
};

TEST_F(FiltersOfHdf5, GzipShuffleAndFletcher32_InAnyChain_AreUndone) {
  for (const DType type : {DType::u8, DType::i16, DType::f32, DType::f64}) {
    const Model model = smooth_model({5003}, {type, false});
    for (int kinds = 1; kinds < 8; ++kinds) {
      Storage storage;
      storage.chunk = {1001};
      storage.shuffle = (kinds & 1) != 0;
      storage.gzip = (kinds & 2) != 0 ? 4 : 0;
      storage.fletcher = (kinds & 4) != 0;
      expect_decoded(model, storage);
    }
    Storage other_order;
    other_order.chunk = {700};
    other_order.more = [](hid_t list) {
      H5Pset_fletcher32(list);
      H5Pset_deflate(list, 1);
      H5Pset_shuffle(list);
    };
    expect_decoded(model, other_order);
  }
}

TEST_F(FiltersOfHdf5, BytesThatDoNotShrink_AreMaskedAndUndone) {
  if (!writes_szip()) GTEST_SKIP() << "this HDF5 cannot write szip";
  const Model model = random_model(random_, {4000}, {DType::i32, false});
  Storage storage;
  storage.chunk = {1000};
  storage.shuffle = true;
  storage.more = [](hid_t list) {
    H5Pset_szip(list, H5_SZIP_NN_OPTION_MASK, 8);
    H5Pset_fletcher32(list);
  };
  // szip gave up and is masked, the checksum is not
  EXPECT_EQ(expect_decoded(model, storage), 0b010U);
}

TEST_F(FiltersOfHdf5, Szip_OfEveryWidthOrderBlockAndLine_IsUndone) {
  if (!writes_szip()) GTEST_SKIP() << "this HDF5 cannot write szip";
  int data_sets = 0, without_mask = 0;
  for (const DType type : {DType::u8, DType::i16, DType::f32, DType::i64}) {
    for (const bool swapped : {false, true}) {
      for (const unsigned block : {2U, 8U, 10U, 16U, 32U}) {
        for (const std::int64_t chunk : {32, 100, 999, 5000}) {
          const Model model = small_model({5003}, {type, swapped && size_of(type) > 1});
          Storage storage;
          storage.chunk = {chunk};
          const unsigned options = pick(random_, 0, 1) == 0 ? H5_SZIP_NN_OPTION_MASK : H5_SZIP_EC_OPTION_MASK;
          storage.more = [=](hid_t list) { H5Pset_szip(list, options, block); };
          ++data_sets;
          without_mask += expect_decoded(model, storage) == 0 ? 1 : 0;
        }
      }
    }
  }
  // a short storage chunk may not shrink
  EXPECT_GT(without_mask, data_sets * 3 / 4);
}

TEST_F(FiltersOfHdf5, SzipOfTruncatedBytes_IsAnError) {
  // 1000 bytes are said to follow; nothing does
  const FilterChain chain(std::vector<FilterStep>{{4, {141, 32, 32, 250}}});
  std::vector<std::byte> stored = {std::byte{0xe8}, std::byte{3}, std::byte{0}, std::byte{0}};
  std::vector<std::byte> to(1000);
  for (int more = 0; more < 20; ++more) {
    EXPECT_THROW(chain.decode(stored, 0, to, scratch_), FilterError) << more;
    stored.push_back(std::byte{0x5a});
  }
}

}  // namespace
}  // namespace rowmill::test
