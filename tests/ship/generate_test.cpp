#include "io/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "io/planted.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill {
namespace {

using test::ScratchFolder;
using test::SmallDisk;

struct Dataset {
  std::vector<hsize_t> shape, chunk;
  std::vector<double> values;  ///< converted by HDF5
  std::vector<std::string> filters;
  bool big_endian = false;
  std::size_t element_bytes = 0;
};

Dataset read(const std::string& path, const std::string& name) {
  Dataset result;
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  if (dataset < 0) {
    ADD_FAILURE() << "no data set " << name << " in " << path;
    return result;
  }
  const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset), creation = H5Dget_create_plist(dataset);
  result.big_endian = H5Tget_order(type) == H5T_ORDER_BE;
  result.element_bytes = H5Tget_size(type);
  result.shape.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, result.shape.data(), nullptr);
  if (H5Pget_layout(creation) == H5D_CHUNKED) {
    result.chunk.resize(result.shape.size());
    H5Pget_chunk(creation, static_cast<int>(result.chunk.size()), result.chunk.data());
  }
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0, settings = 0;
    std::size_t count = 0;
    char filter[64] = "";
    H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &count, nullptr, sizeof filter, filter, &settings);
    result.filters.emplace_back(filter);
  }
  result.values.assign(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)), -7777.0);
  EXPECT_GE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.values.data()), 0);
  H5Pclose(creation), H5Sclose(space), H5Tclose(type), H5Dclose(dataset), H5Fclose(file);
  return result;
}

/// Any NaN is as good as another: HDF5 makes its own when it swaps bytes.
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) || (std::isnan(x) && std::isnan(y));
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

GenerateOptions options_for(const std::string& path, std::int64_t rows, std::int64_t columns) {
  GenerateOptions options;
  options.path = path;
  options.rows = rows;
  options.columns = columns;
  return options;
}

ExitCode code_of(const GenerateOptions& options, std::string* message = nullptr) {
  try {
    generate(options);
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return ExitCode::ok;
}

/// Means and covariances over pairs of present values, in long double, against what is planted: within six standard
/// errors each (of Gaussian data; over two thousand comparisons a false alarm is about 4e-6).
void expect_planted_moments(const std::string& path) {
  const Dataset x = read(path, "/X");
  const auto mean = read(path, "/planted/mean").values, deviation = read(path, "/planted/std").values;
  const auto covariance = read(path, "/planted/covariance").values;
  const std::size_t rows = x.shape.at(0), columns = x.shape.at(1);
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      long double count = 0, sum_i = 0, sum_ij = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        const long double a = x.values[r * columns + i] - mean[i], b = x.values[r * columns + j] - mean[j];
        if (std::isnan(a) || std::isnan(b)) continue;
        count += 1, sum_i += a, sum_ij += a * b;
      }
      const double c_ij = covariance[i * columns + j], c_ii = covariance[i * columns + i];
      const double c_jj = covariance[j * columns + j];
      ASSERT_EQ(c_ij, covariance[j * columns + i]);
      const double error = std::sqrt((c_ii * c_jj + c_ij * c_ij) / static_cast<double>(count));
      EXPECT_NEAR(static_cast<double>(sum_ij / count), c_ij, 6 * error) << i << ", " << j;
      if (i != j) continue;
      EXPECT_NEAR(static_cast<double>(sum_i / count), 0, 6 * std::sqrt(c_ii / static_cast<double>(count))) << i;
      EXPECT_DOUBLE_EQ(deviation[i], std::sqrt(c_ii));
    }
  }
}

TEST(Generate, PlantedMomentsAreInTheFile) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "x.h5", 6007, 13);
  options.seed = seed;
  for (const DType type : {DType::f16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i64}) {
    for (const std::int64_t rank : {0, 1, 4}) {
      SCOPED_TRACE(name_of(type) + ", rank " + std::to_string(rank));
      options.type = type;
      options.rank = rank;
      options.missing_share = is_floating(type) && rank == 4 ? 0.2 : 0;
      options.overwrite = true;
      generate(options);
      expect_planted_moments(options.path);
    }
  }
}

TEST(Generate, CovarianceOfLowRank_IsPlantedWithThatRank) {
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "x.h5", 3, 6);
  options.rank = 1;
  options.noise = 0;
  generate(options);
  const auto covariance = read(options.path, "/planted/covariance").values;
  double off_diagonal = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      EXPECT_NEAR(covariance[i * 6 + j] * covariance[i * 6 + j], covariance[i * 6 + i] * covariance[j * 6 + j], 1e-12);
      if (i != j) off_diagonal += std::fabs(covariance[i * 6 + j]);
    }
  }
  EXPECT_GT(off_diagonal, 1.0);
}

TEST(Generate, NoiseSpreadAndOffset_AreThoseAskedFor) {
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "x.h5", 5000, 2001);
  options.rank = 0;
  options.noise = 0.25;
  options.mean_offset = 1000;
  options.mean_spread = 3;
  options.type = DType::f64;
  generate(options);
  for (const double deviation : read(options.path, "/planted/std").values) EXPECT_EQ(deviation, 0.25);
  double sum = 0, squares = 0;
  for (const double mean : read(options.path, "/planted/mean").values) {
    sum += mean - 1000;
    squares += (mean - 1000) * (mean - 1000);
  }
  EXPECT_NEAR(sum / 2001, 0, 3 * 6 / std::sqrt(2001.0));
  EXPECT_NEAR(squares / 2001, 9, 9 * 6 * std::sqrt(2 / 2001.0));
}

TEST(Generate, ShareOfMissing_IsTheShareOfNaN) {
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "x.h5", 10000, 10);
  options.missing_share = 0.01;
  generate(options);
  double missing = 0;
  for (const double value : read(options.path, "/X").values) missing += std::isnan(value) ? 1 : 0;
  EXPECT_NEAR(missing, 1000, 6 * std::sqrt(1000 * 0.99));
  options.missing_share = 1;
  options.overwrite = true;
  generate(options);
  for (const double value : read(options.path, "/X").values) EXPECT_TRUE(std::isnan(value));
}

TEST(Generate, ValuesDoNotDependOnStorage) {
  const ScratchFolder folder;
  GenerateOptions plain = options_for(folder / "plain.h5", 1013, 37);
  plain.missing_share = 0.05;
  generate(plain);
  const auto expected = read(plain.path, "/X");
  EXPECT_TRUE(expected.chunk.empty());
  int number = 0;
  for (const std::int64_t chunk_rows : {1, 7, 500, 5000}) {
    for (const std::string filter : {"none", "gzip", "shuffle+gzip"}) {
      for (const bool big_endian : {false, true}) {
        GenerateOptions options = plain;
        options.path = folder / (std::to_string(++number) + ".h5");
        options.dataset = "deep/X";
        options.chunk_rows = chunk_rows;
        options.chunk_columns = chunk_rows == 7 ? 37 : 10;
        options.filter = filter;
        options.big_endian = big_endian;
        generate(options);
        const auto found = read(options.path, "/deep/X");
        EXPECT_TRUE(same_bits(found.values, expected.values)) << chunk_rows << " " << filter;
        EXPECT_EQ(found.big_endian, big_endian);
        EXPECT_EQ(found.chunk.at(0), static_cast<hsize_t>(std::min<std::int64_t>(chunk_rows, 1013)));
        EXPECT_EQ(found.filters.size(), filter == "none" ? 0U : filter == "gzip" ? 1U : 2U);
      }
    }
  }
}

TEST(Generate, MoreRows_BeginWithTheSameRows) {
  const ScratchFolder folder;
  const GenerateOptions few = options_for(folder / "few.h5", 11, 5), many = options_for(folder / "many.h5", 40, 5);
  generate(few);
  generate(many);
  auto values = read(many.path, "/X").values;
  values.resize(55);
  EXPECT_TRUE(same_bits(values, read(few.path, "/X").values));
}

TEST(Generate, OtherSeed_GivesOtherValuesAndAnswers) {
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "1.h5", 10, 4);
  generate(options);
  options.path = folder / "2.h5";
  options.seed = 2;
  generate(options);
  EXPECT_FALSE(same_bits(read(folder / "1.h5", "/X").values, read(folder / "2.h5", "/X").values));
  EXPECT_FALSE(same_bits(read(folder / "1.h5", "/planted/mean").values, read(folder / "2.h5", "/planted/mean").values));
}

TEST(Generate, SameOptions_GiveTheSameBytes) {
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "1.h5", 100, 4);
  options.chunk_rows = 10, options.chunk_columns = 4, options.filter = "gzip";
  generate(options);
  options.path = folder / "2.h5";
  generate(options);
  EXPECT_EQ(contents(folder / "1.h5"), contents(folder / "2.h5"));
}

TEST(Generate, ValuesAreTheSameOnEveryMachine) {
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "x.h5", 1000, 9);
  options.type = DType::f64;
  generate(options);
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const double value : read(options.path, "/X").values) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (std::bit_cast<std::uint64_t>(value) >> shift & 0xff)) * 1099511628211ULL;
    }
  }
  EXPECT_EQ(hash, 9624255427479333321ULL);  // the same formulas in Python give this too
}

TEST(Generate, NpyHoldsTheSameValues) {
  if (std::system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-h5py is not installed";
  const ScratchFolder folder;
  std::ofstream(folder / "check.py") << R"(
import h5py, numpy as np, sys
for stem, code in zip(sys.argv[1::2], sys.argv[2::2]):
    a = np.load(stem + '.npy')
    with h5py.File(stem + '.h5', 'r') as f, h5py.File(stem + '.npy.planted.h5', 'r') as p:
        b = f['X'][:]
        assert a.dtype == b.dtype == np.dtype(code), (a.dtype, b.dtype)
        assert a.shape == b.shape == (23, 3) and a.tobytes() == b.tobytes()
        assert sorted(p) == ['planted'] and sorted(f) == ['X', 'planted']
        for k in ('mean', 'std', 'covariance'):
            assert (p['planted'][k][:] == f['planted'][k][:]).all()
        t = p['planted'].attrs
        assert t['seed'] == 1 and t['rank'] == 5 and t['noise'] in (1, 4) and t['missing'] == 0
assert len(sys.argv) == 25
)";
  const std::vector<std::pair<DType, std::string>> types{{DType::f16, "f2"}, {DType::f32, "f4"}, {DType::f64, "f8"},
                                                         {DType::i8, "i1"},  {DType::u16, "u2"}, {DType::i64, "i8"}};
  std::string command = "/usr/bin/python3 " + (folder / "check.py");
  for (const auto& [type, code] : types) {
    for (const bool big_endian : {false, true}) {
      const std::string order = big_endian ? ">" : "<", stem = folder / (order + code);
      for (const std::string ending : {".h5", ".npy"}) {
        GenerateOptions options = options_for(stem + ending, 23, 3);
        options.type = type;
        options.big_endian = big_endian;
        generate(options);
      }
      command += " '" + stem + "' '" + order + code + "'";
    }
  }
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Generate, NoRowsAndOneColumn_AreWritten) {
  const ScratchFolder folder;
  GenerateOptions options = options_for(folder / "0.h5", 0, 3);
  options.chunk_rows = 4, options.chunk_columns = 3, options.filter = "gzip";
  generate(options);
  EXPECT_EQ(read(options.path, "/X").shape, (std::vector<hsize_t>{0, 3}));
  generate(options_for(folder / "1.h5", 1, 1));
  EXPECT_EQ(read(folder / "1.h5", "/X").shape, (std::vector<hsize_t>{1, 1}));
}

TEST(Generate, ManyColumns_HaveNoPlantedCovariance) {
  const ScratchFolder folder;
  generate(options_for(folder / "x.h5", 2, 4097));
  EXPECT_EQ(read(folder / "x.h5", "/planted/std").values.size(), 4097U);
  const hid_t file = H5Fopen((folder / "x.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  EXPECT_EQ(H5Lexists(file, "/planted/covariance", H5P_DEFAULT), 0);
  H5Fclose(file);
}

TEST(Generate, RefusesOptionsThatMakeNoSense) {
  const ScratchFolder folder;
  const auto refused = [&](auto change, const std::string& because) {
    GenerateOptions options = options_for(folder / "x.h5", 10, 10);
    change(options);
    std::string message;
    EXPECT_EQ(code_of(options, &message), ExitCode::usage) << because;
    EXPECT_THAT(message, testing::HasSubstr(because));
  };
  refused([](auto& o) { o.columns = 0; }, "shape");
  refused([](auto& o) { o.rows = -1; }, "shape");
  refused([](auto& o) { o.rows = std::int64_t{1} << 60; }, "too large");
  refused([](auto& o) { o.type = DType::bf16; }, "no type 'bfloat16'");
  refused([](auto& o) { o.rank = -1; }, "rank");
  refused([](auto& o) { o.missing_share = 1.5; }, "share");
  refused([](auto& o) { o.missing_share = std::nan(""); }, "share");
  refused([](auto& o) { o.type = DType::i32, o.missing_share = 0.1; }, "no NaN");
  refused([](auto& o) { o.noise = -1; }, "negative");
  refused([](auto& o) { o.filter = "zip"; }, "no filter 'zip'");
  refused([](auto& o) { o.gzip_level = 10; }, "0 to 9");
  refused([](auto& o) { o.chunk_rows = 5; }, "chunk");
  refused([](auto& o) { o.filter = "gzip"; }, "add --chunk");
  refused([](auto& o) { o.filter = "shuffle+gzip"; }, "add --chunk");
  refused([](auto& o) { o.dataset = "/"; }, "data set");
  refused([](auto& o) { o.dataset = "/planted/mean"; }, "data set");
  refused([](auto& o) { o.memory = 1000; }, "memory");
  refused([](auto& o) { o.path += ".npy", o.filter = "gzip"; }, ".npy");
  refused([&](auto& o) { o.path = folder / "missing/x.h5"; }, "folder");
  // what does not fit would be cut off, and the planted answers would not be those of the values
  refused([](auto& o) { o.noise = 1e308; }, "do not fit float32");
  refused([](auto& o) { o.loading = 1e200, o.type = DType::f64; }, "do not fit float64");
  refused([](auto& o) { o.mean_offset = 66000, o.type = DType::f16; }, "do not fit float16");
  refused([](auto& o) { o.mean_offset = -100, o.type = DType::u8; }, "do not fit uint8");
  refused([](auto& o) { o.rows = std::int64_t{1} << 40; }, "are free there");
  EXPECT_EQ(folder.names(), std::set<std::string>{});
}

TEST(Generate, DiskFull_FailsNamingItAndLeavesNothing) {
  const ScratchFolder folder;
  const SmallDisk disk(folder.path(), 1 << 20);
  if (!disk.mounted()) GTEST_SKIP() << "a small tmpfs cannot be mounted here (not root)";
  const auto expect_full = [&](GenerateOptions options) {
    std::string message;
    EXPECT_EQ(code_of(options, &message), ExitCode::failed) << options.path;
    EXPECT_THAT(message, testing::AllOf(testing::HasSubstr(options.path), testing::HasSubstr("No space left")));
    EXPECT_EQ(folder.names(), std::set<std::string>{});
  };
  // the rows alone would fit
  const std::int64_t rows = (1 << 20) / 40 - 10;
  expect_full(options_for(folder / "x.h5", rows, 10));
  expect_full(options_for(folder / "x.npy", rows, 10));
  GenerateOptions chunked = options_for(folder / "x.h5", 100000, 10);
  chunked.chunk_rows = 10000, chunked.chunk_columns = 10, chunked.filter = "gzip";
  expect_full(chunked);
  chunked.chunk_rows = 100, chunked.chunk_columns = 7;
  expect_full(chunked);
  generate(options_for(folder / "x.h5", 1000, 10));
  EXPECT_EQ(folder.names(), std::set<std::string>{"x.h5"});
}

template <typename T>
std::vector<T> encoded(const std::vector<double>& values, DType type) {
  std::vector<T> result(values.size(), static_cast<T>(0x55));
  encode_values(values.data(), static_cast<std::int64_t>(values.size()), {type, false},
                reinterpret_cast<std::byte*>(result.data()));
  return result;
}

TEST(EncodeValues, IntegersRoundToEvenAndClip) {
  const std::vector<double> values{0.5, 1.5, -0.5, -1.5, 127.4, 127.5, 1e300, -1e300, -128.5};
  EXPECT_EQ(encoded<std::int8_t>(values, DType::i8),
            (std::vector<std::int8_t>{0, 2, 0, -2, 127, 127, 127, -128, -128}));
  EXPECT_EQ(encoded<std::uint8_t>(values, DType::u8), (std::vector<std::uint8_t>{0, 2, 0, 0, 127, 128, 255, 0, 0}));
  EXPECT_EQ(encoded<std::int64_t>({9.3e18, -9.3e18, 4503599627370497}, DType::i64),
            (std::vector<std::int64_t>{INT64_MAX, INT64_MIN, 4503599627370497}));
  EXPECT_EQ(encoded<std::uint64_t>({1.9e19, -1, 9.5e18}, DType::u64),
            (std::vector<std::uint64_t>{UINT64_MAX, 0, 9500000000000000000ULL}));
}

TEST(EncodeValues, Float16RoundsToEvenAndClips) {
  const std::vector<std::pair<double, std::uint16_t>> cases{
      {0, 0x0000},           {-0.0, 0x8000},          {1, 0x3c00},
      {-2, 0xc000},          {65504, 0x7bff},         {1e9, 0x7bff},
      {-1e9, 0xfbff},        {0x1p-24, 0x0001},       {0x1.8p-24, 0x0002},
      {0x1p-25, 0x0000},     {0x1p-14, 0x0400},       {0x1.ff8p-15, 0x03ff},
      {0x1.ffcp-15, 0x0400}, {1.00048828125, 0x3c00}, {1.00146484375, 0x3c02},
      {2047.5, 0x6800},      {std::nan(""), 0x7e00}};
  for (const auto& [value, bits] : cases) EXPECT_EQ(encoded<std::uint16_t>({value}, DType::f16).at(0), bits) << value;
}

}  // namespace
}  // namespace rowmill
