// HDF5 types: what is read as numbers, what is converted, what is refused by name.
#include <cmath>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

class H5Types : public ::testing::Test {
 protected:
  /// Writes bytes as /X of the given type.
  void write(hid_t type, const std::vector<hsize_t>& shape, const void* bytes) {
    const hid_t file = H5Fcreate((folder_ / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file, "X", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    ASSERT_TRUE(bytes == nullptr || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
    H5Tclose(type);
  }

  template <typename T>
  std::vector<T> read(ElementType type, const std::string& stored_type) {
    const auto source = open_source(request_for(folder_ / "a.h5"));
    EXPECT_EQ(source->info().type, type);
    EXPECT_EQ(source->info().stored_type, stored_type);
    const RowRange all{0, source->info().rows};
    const PoisonedBuffer buffer(source->bytes_for(all));
    const auto rows = std::get<DenseRows>(source->read(all, buffer.span()).rows);
    std::vector<T> values(static_cast<std::size_t>(rows.rows * rows.columns));
    std::memcpy(values.data(), rows.data, values.size() * sizeof(T));
    return values;
  }

  void expect_refused(const std::string& by_name) {
    const Error e = error_of([&] { plan_input(request_for(folder_ / "a.h5:/X")); });
    EXPECT_EQ(e.code(), ExitCode::input);
    EXPECT_NE(std::string(e.what()).find("a.h5:/X"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(by_name), std::string::npos) << e.what();
  }

  ScratchFolder folder_;
};

TEST_F(H5Types, BoolEnum_IsInt8) {
  const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
  for (const std::int8_t value : {std::int8_t{0}, std::int8_t{1}})
    H5Tenum_insert(type, value ? "TRUE" : "FALSE", &value);
  const std::vector<std::int8_t> values = {0, 1, 1, 0, 1, 0};
  write(type, {3, 2}, values.data());
  EXPECT_EQ(read<std::int8_t>({DType::i8, false}, "bool"), values);
}

TEST_F(H5Types, AttributesOfConventions_AreAppliedUnlessHdf5IsAskedFor) {
  const double values[4] = {1, 2, 3, 4};
  write(H5Tcopy(H5T_NATIVE_DOUBLE), {2, 2}, values);
  EXPECT_TRUE(open_source(request_for(folder_ / "a.h5:/X"))->info().warnings.empty());
  const hid_t file = H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, "/X", H5P_DEFAULT), scalar = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(dataset, "_FillValue", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, H5T_NATIVE_DOUBLE, values);
  H5Aclose(attribute);
  H5Sclose(scalar);
  H5Dclose(dataset);
  H5Fclose(file);
  InputRequest request = request_for(folder_ / "a.h5:/X");
  const auto first_value = [&] {
    const auto source = open_source(request);
    const PoisonedBuffer buffer(source->bytes_for({0, 2}));
    const auto rows = std::get<DenseRows>(source->read({0, 2}, buffer.span()).rows);
    double value = 0;
    std::memcpy(&value, rows.data, sizeof value);
    return value;
  };
  EXPECT_TRUE(std::isnan(first_value()));
  request.format = "hdf5";
  EXPECT_EQ(first_value(), 1);
}

TEST_F(H5Types, OtherEnum_IsItsCodes) {
  const hid_t type = H5Tenum_create(H5T_STD_I16BE);
  const std::int16_t code = 0x0102;
  H5Tenum_insert(type, "A", &code);
  const std::vector<std::int16_t> values = {0x0102, 0x0102};
  write(type, {2}, values.data());
  EXPECT_EQ(read<std::int16_t>({DType::i16, true}, "enum of int16"), values);
}

TEST_F(H5Types, BitField_IsItsBytes) {
  const std::vector<std::uint16_t> values = {0, 1, 0x8000, 0xffff};
  write(H5Tcopy(H5T_STD_B16LE), {4}, values.data());
  EXPECT_EQ(read<std::uint16_t>({DType::u16, false}, "bitfield16"), values);
}

TEST_F(H5Types, IntegersOfOddPrecision_AreWidenedWithTheirSign) {
  const hid_t type = H5Tcopy(H5T_STD_I32LE);
  H5Tset_precision(type, 24);
  const std::vector<std::uint32_t> values = {0x000000, 0x7fffff, 0xffffff, 0x800000};
  write(type, {2, 2}, values.data());
  EXPECT_EQ(read<std::int32_t>({DType::i32, false}, "int24 in 4 bytes"),
            (std::vector<std::int32_t>{0, 8388607, -1, -8388608}));
}

TEST_F(H5Types, IntegersOfOddSize_AreWidenedInEitherByteOrder) {
  const hid_t type = H5Tcopy(H5T_STD_U32BE);
  H5Tset_precision(type, 24);
  H5Tset_size(type, 3);
  const std::vector<std::uint8_t> bytes = {0, 0, 1, 255, 255, 255};
  write(type, {2}, bytes.data());
  EXPECT_EQ(read<std::uint32_t>({DType::u32, false}, "uint24"), (std::vector<std::uint32_t>{1, 16777215}));
}

TEST_F(H5Types, FloatsOfAnotherFormat_AreConvertedToDouble) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);  // 24 bits: sign, 7 of exponent, 16 of mantissa
  H5Tset_fields(type, 23, 16, 7, 0, 16);
  H5Tset_size(type, 3);
  H5Tset_ebias(type, 63);
  const std::vector<std::uint8_t> bytes = {0, 0, 63, 0, 128, 64, 0, 0, 192};
  write(type, {3}, bytes.data());
  EXPECT_EQ(read<double>({DType::f64, false}, "float24 of 7 exponent and 16 mantissa bits"),
            (std::vector<double>{1.0, 3.0, -2.0}));
}

TEST_F(H5Types, ThatAreNotNumeric_AreRefusedByName) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, 5);
  write(type, {3}, nullptr);
  expect_refused("string of 5 bytes");
  type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  write(type, {3}, nullptr);
  expect_refused("variable-length string");
  write(H5Tvlen_create(H5T_NATIVE_DOUBLE), {3}, nullptr);
  expect_refused("variable-length rows");
  write(H5Tcreate(H5T_OPAQUE, 7), {3}, nullptr);
  expect_refused("opaque of 7 bytes");
  write(H5Tcopy(H5T_STD_REF_OBJ), {3}, nullptr);
  expect_refused("object reference");
  const hsize_t three = 3;
  write(H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &three), {3}, nullptr);
  expect_refused("array type");
  write(H5Tcopy(H5T_NATIVE_LDOUBLE), {3}, nullptr);
  expect_refused("float80");
}

TEST_F(H5Types, Compounds_AreRefusedWithTheirFields) {
  for (const bool complex : {false, true}) {
    const hid_t type = H5Tcreate(H5T_COMPOUND, 16);
    H5Tinsert(type, complex ? "r" : "alpha", 0, H5T_NATIVE_DOUBLE);
    H5Tinsert(type, complex ? "i" : "beta", 8, H5T_NATIVE_DOUBLE);
    write(type, {3}, nullptr);
    expect_refused(complex ? "complex128" : "compound {alpha, beta}");
  }
}

TEST_F(H5Types, ScalarsNullSpacesAndNoColumns_AreRefused) {
  write(H5Tcopy(H5T_NATIVE_DOUBLE), {}, nullptr);
  expect_refused("scalar");
  write(H5Tcopy(H5T_NATIVE_DOUBLE), {3, 0}, nullptr);
  expect_refused("no columns");
  const hid_t file = H5Fcreate((folder_ / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate(H5S_NULL);
  H5Dclose(H5Dcreate2(file, "X", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(file);
  expect_refused("null data space");
}

TEST_F(H5Types, NoRows_AreASourceWithoutRows) {
  write(H5Tcopy(H5T_NATIVE_DOUBLE), {0, 5}, nullptr);
  const auto source = open_source(request_for(folder_ / "a.h5:/X"));
  EXPECT_EQ(source->info().rows, 0);
  EXPECT_EQ(source->info().columns, 5);
}

TEST_F(H5Types, AnAxisThatIsNotThere_IsRefused) {
  write(H5Tcopy(H5T_NATIVE_DOUBLE), {3, 5}, nullptr);
  for (const int axis : {-1, 2, 100}) {
    const Error e = error_of([&] { plan_input(request_for(folder_ / "a.h5:/X", axis)); });
    EXPECT_EQ(e.code(), ExitCode::usage);
    EXPECT_NE(std::string(e.what()).find("no axis " + std::to_string(axis)), std::string::npos) << e.what();
  }
}

TEST_F(H5Types, AFilterThatIsNotBuiltIn_IsRefusedByIdAndName) {
  for (const auto& [id, name] : {std::pair<int, std::string>{32026, "blosc2"}, {32013, "zfp"}, {32999, "unknown"}}) {
    std::mt19937_64 random(fresh_seed());
    Model model = random_model(random, {4, 4}, {DType::f32, false});
    const auto add_filter = [filter = id](hid_t list) { H5Pset_filter(list, filter, H5Z_FLAG_OPTIONAL, 0, nullptr); };
    write_model(folder_ / "a.h5", model, {.chunk = {2, 2}, .more = add_filter});
    expect_refused("filter " + std::to_string(id) + " (" + name + ")");
  }
}

}  // namespace
}  // namespace rowmill::test
