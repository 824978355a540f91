// .npy files: every type, order and row axis against a model; headers that are damaged or hostile.
#include <fstream>

#include "io/npy_header.hpp"
#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

std::string npy_descr(ElementType type) {
  static const std::string codes[] = {"f2", "", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"};
  const bool big = type.swapped == (std::endian::native == std::endian::little);
  return std::string(size_of(type) == 1 ? "|" : big ? ">" : "<") + codes[static_cast<int>(type.dtype)];
}

std::string shape_tuple(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape) text += std::to_string(extent) + ",";
  return text + ")";
}

class Npy : public ::testing::Test {
 protected:
  void write(const std::string& dictionary, const std::vector<std::byte>& values, int version = 1) {
    std::string header = dictionary + "\n";
    std::ofstream file(folder_ / "a.npy", std::ios::binary);
    file << "\x93NUMPY" << static_cast<char>(version) << '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file << static_cast<char>(header.size() >> 8 * i & 255);
    file << header;
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size()));
  }

  Error error_with(const std::string& dictionary, std::size_t value_bytes = 96) {
    write(dictionary, std::vector<std::byte>(value_bytes));
    const Error e = error_of([&] { plan_input(request_for(folder_ / "a.npy")); });
    EXPECT_EQ(e.code(), ExitCode::input) << dictionary;
    EXPECT_NE(std::string(e.what()).find("a.npy"), std::string::npos) << e.what();
    return e;
  }
  void expect_error(const std::string& dictionary, const std::string& words) {
    const Error e = error_with(dictionary);
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << dictionary << ": " << e.what();
  }

  ScratchFolder folder_;
  std::uint64_t seed_ = fresh_seed();
  std::mt19937_64 random_{seed_};
};

/// The model's bytes with the first axis fastest.
std::vector<std::byte> fortran_bytes(const Model& model) {
  std::vector<std::byte> result;
  std::vector<std::int64_t> at(model.shape.size(), 0);
  for (std::int64_t element = 0; element < model.elements(); ++element) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) place = place * model.shape[i] + at[i];
    const auto* from = model.bytes.data() + static_cast<std::size_t>(place) * model.width();
    result.insert(result.end(), from, from + model.width());
    for (std::size_t i = 0; i < at.size() && ++at[i] == model.shape[i]; ++i) at[i] = 0;
  }
  return result;
}

TEST_F(Npy, OfAnyTypeOrderAndRowAxis_IsReadInPlace) {
  for (int trial = 0; trial < 60; ++trial) {
    const DType dtype = all_types()[static_cast<std::size_t>(trial % 12)];
    if (dtype == DType::bf16) continue;  // NumPy has none
    const ElementType type{dtype, size_of(dtype) > 1 && trial % 2 == 1};
    std::vector<std::int64_t> shape(static_cast<std::size_t>(pick(random_, 1, 4)));
    for (auto& extent : shape) extent = pick(random_, 1, 12);
    const Model model = random_model(random_, shape, type);
    const bool fortran = pick(random_, 0, 1) == 1;
    const int axis = static_cast<int>(pick(random_, 0, static_cast<std::int64_t>(shape.size()) - 1));
    SCOPED_TRACE(describe(shape) + (fortran ? "fortran" : "c") + " axis " + std::to_string(axis) + " seed " +
                 std::to_string(seed_));
    write("{'descr': '" + npy_descr(type) + "', 'fortran_order': " + (fortran ? "True" : "False") +
              ", 'shape': " + shape_tuple(shape) + ", }",
          fortran ? fortran_bytes(model) : model.bytes, 1 + trial % 3);
    const auto source = open_source(request_for(folder_ / "a.npy", axis));
    EXPECT_EQ(source->info().type, type);
    const std::int64_t rows = source->info().rows;
    ASSERT_TRUE(reads_as(*source, model, {0, rows}));
    const std::int64_t first = pick(random_, 0, rows);
    EXPECT_TRUE(reads_as(*source, model, {first, pick(random_, 0, rows - first)}));
  }
}

TEST_F(Npy, LargeFortranMatrix_IsTurnedInPieces) {
  const Model model = random_model(random_, {5000, 173}, {DType::f32, true});
  write("{'descr': '" + npy_descr(model.type) + "', 'fortran_order': True, 'shape': (5000, 173)}",
        fortran_bytes(model));
  const auto source = open_source(request_for(folder_ / "a.npy"));
  EXPECT_TRUE(reads_as(*source, model, {0, 5000}));
  EXPECT_TRUE(reads_as(*source, model, {17, 1000}));
  EXPECT_TRUE(reads_as(*source, model, {4999, 1}));
}

TEST_F(Npy, BoolAndPython2AndTrailingBytes_AreRead) {
  const Model model = random_model(random_, {4, 3}, {DType::i8, false});
  std::vector<std::byte> bytes = model.bytes;
  bytes.resize(40);
  write("{\"fortran_order\":False,'shape':(4L,3L),\"descr\":\"|b1\"}", bytes);
  const auto source = open_source(request_for(folder_ / "a.npy"));
  EXPECT_EQ(source->info().stored_type, "bool");
  EXPECT_TRUE(reads_as(*source, model, {0, 4}));
}

TEST_F(Npy, HeadersThatAreDamagedOrHostile_AreInputErrors) {
  const std::string good = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4)}";
  write(good, std::vector<std::byte>(96));
  EXPECT_NO_THROW(plan_input(request_for(folder_ / "a.npy")));
  const std::string start = "{'descr': '<f8', 'fortran_order': False, 'shape': ";
  expect_error(start + "(3, 5)}", "truncated");
  expect_error(start + "(-3, 4)}", "negative");
  expect_error(start + "(3, 99999999999999999999)}", "beyond 64 bits");
  expect_error(start + "(4294967296, 4294967296, 4294967296)}", "more than any file holds");
  expect_error(start + "(9223372036854775807, 1)}", "more than any file holds");
  expect_error(start + "()}", "scalar");
  expect_error(start + "(3, 0)}", "no columns");
  expect_error(start + "(3, 4)", "has no '}'");
  expect_error(start + "(3 4)}", "has no ')'");
  expect_error(start + "(3, x)}", "no number");
  expect_error(start + "[3, 4]}", "has no '('");
  expect_error(start + "(3, 4)} + evil()", "goes on");
  expect_error("{'descr': '<f8', 'shape': (3, 4)}", "lacks");
  expect_error("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3, 4)}", "repeated");
  expect_error("{'descr': '<f8', 'fortran_order': 0, 'shape': (3, 4)}", "True or False");
  expect_error("{'descr': '<f8, 'fortran_order': False, 'shape': (3, 4)}", "");
  expect_error("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), 'x': 1}", "unknown");
  expect_error("", "has no '{'");
  expect_error(std::string(60, '{'), "no string");
}

TEST_F(Npy, TypesThatAreNotNumeric_AreRefusedByName) {
  const std::string rest = ", 'fortran_order': False, 'shape': (3, 4)}";
  for (const auto& [descr, words] : {std::pair<std::string, std::string>{"'|O'", "Python objects"},
                                     {"'<U5'", "strings"},
                                     {"'|S5'", "strings"},
                                     {"'<c16'", "complex"},
                                     {"'<M8[ns]'", "dates"},
                                     {"'|V3'", "opaque"},
                                     {"'<f16'", "not numeric"},
                                     {"'<i3'", "not numeric"},
                                     {"'|f8'", "not numeric"},
                                     {"'f8'", "not numeric"},
                                     {"''", "not numeric"},
                                     {"[('a', '<f8')]", "structure"}}) {
    expect_error("{'descr': " + descr + rest, words);
  }
}

TEST_F(Npy, HeaderLengthBeyondTheFile_IsAnInputError) {
  for (const std::string& bytes :
       {std::string("\x93NUMPY\x01\x00\xff\xff{", 11), std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13),
        std::string("\x93NUMPY\x01\x00", 8), std::string("\x93NUMPY", 6),
        std::string("\x93NUMPY\x09\x00\x01\x00{", 11)}) {
    std::ofstream(folder_ / "a.npy", std::ios::binary) << bytes;
    const Error e = error_of([&] { plan_input(request_for(folder_ / "a.npy")); });
    EXPECT_EQ(e.code(), ExitCode::input) << e.what();
  }
}

TEST_F(Npy, RandomlyDamagedHeaders_NeverDoWorseThanAnError) {
  const std::string good = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }";
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = good;
    for (std::int64_t i = pick(random_, 1, 4); i > 0; --i) {
      damaged[static_cast<std::size_t>(pick(random_, 0, static_cast<std::int64_t>(damaged.size()) - 1))] =
          static_cast<char>(pick(random_, 32, 126));
    }
    if (pick(random_, 0, 3) == 0) damaged.resize(static_cast<std::size_t>(pick(random_, 0, 60)));
    try {
      const NpyHeader header = parse_npy_header(damaged, "a.npy");
      for (const std::int64_t extent : header.shape) EXPECT_GE(extent, 0);
      npy_element(header.descr, "a.npy");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::input) << damaged << " seed " << seed_;
    }
  }
}

}  // namespace
}  // namespace rowmill::test
