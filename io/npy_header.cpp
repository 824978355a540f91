#include "io/npy_header.hpp"

#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace rowmill {

namespace {

/// Reads the few kinds of Python literals that a header is made of.
class Parser {
 public:
  Parser(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader header() {
    NpyHeader header;
    std::array<bool, 3> seen = {};
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      const std::size_t which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3 || std::exchange(seen[which], true)) fail("has an unknown or repeated key \"" + key + "\"");
      if (which == 0) header.descr = descr();
      if (which == 1) header.fortran_order = boolean();
      if (which == 2) header.shape = shape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("goes on after its dictionary");
    for (const bool one : seen) {
      if (!one) fail("lacks descr, fortran_order or shape");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ExitCode::input, name_ + ": the .npy header " + what + ": the file is damaged");
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("has no '") + c + "' at byte " + std::to_string(at_));
  }

  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("has no string at byte " + std::to_string(at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail("ends within a string");
    std::string result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }

  std::string descr() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      throw Error(ExitCode::input, name_ + ": its type is not numeric: a structure (" + text_.substr(at_, 60) + ")");
    }
    return string();
  }

  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string word = value ? "True" : "False";
      if (text_.compare(at_, word.size(), word) == 0) {
        at_ += word.size();
        return value;
      }
    }
    fail("has no True or False for fortran_order");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!accept(')')) {
      result.push_back(integer());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::int64_t integer() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '-') fail("has a negative extent");
    std::int64_t value = 0;
    const std::size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail("has an extent beyond 64 bits");
      }
    }
    if (at_ == first) fail("has no number at byte " + std::to_string(at_));
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
  }

  const std::string& text_;
  const std::string& name_;
  std::size_t at_ = 0;
};

std::string kind_text(char kind) {
  switch (kind) {
    case 'O':
      return "Python objects";
    case 'U':
    case 'S':
    case 'a':
      return "strings";
    case 'c':
      return "complex numbers";
    case 'M':
    case 'm':
      return "dates or times";
    case 'V':
      return "opaque bytes";
    default:
      return "unknown";
  }
}

std::optional<DType> dtype_of(const std::string& kind_and_size) {
  struct Known {
    const char* code;
    DType type;
  };
  static constexpr std::array kKnown = {Known{"b1", DType::i8},  Known{"i1", DType::i8},  Known{"i2", DType::i16},
                                        Known{"i4", DType::i32}, Known{"i8", DType::i64}, Known{"u1", DType::u8},
                                        Known{"u2", DType::u16}, Known{"u4", DType::u32}, Known{"u8", DType::u64},
                                        Known{"f2", DType::f16}, Known{"f4", DType::f32}, Known{"f8", DType::f64}};
  for (const Known& known : kKnown) {
    if (kind_and_size == known.code) return known.type;
  }
  return {};
}

}  // namespace

NpyHeader parse_npy_header(const std::string& text, const std::string& name) {
  return Parser(text, name).header();
}

ElementType npy_element(const std::string& descr, const std::string& name) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::optional<DType> type = descr.empty() ? std::nullopt : dtype_of(descr.substr(1));
  const bool known_order = order == '<' || order == '>' || order == '=' || order == '|';
  const std::size_t bytes = type ? size_of(*type) : 0;
  if (bytes == 0 || !known_order || (order == '|' && bytes > 1)) {
    const std::string kind = descr.size() > 1 ? kind_text(descr[1]) : "unknown";
    throw Error(ExitCode::input, name + ": its type is not numeric: " + kind + " (" + descr.substr(0, 40) + ")");
  }
  const bool big = order == '>' || (order != '<' && std::endian::native == std::endian::big);
  return {type.value(), bytes > 1 && big != (std::endian::native == std::endian::big)};
}

}  // namespace rowmill
