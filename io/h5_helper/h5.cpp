#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

namespace {

struct Words {
  std::string innermost, outermost;
};

herr_t collect(unsigned position, const H5E_error2_t* error, void* to) {
  auto* words = static_cast<Words*>(to);
  const char* text = error->desc == nullptr ? "" : error->desc;
  if (position == 0) words->innermost = text;
  words->outermost = text;
  return 0;
}

}  // namespace

namespace {

/// HDF5 describes a system call that failed with all its arguments; what the system said is enough.
std::string without_internals(const std::string& words) {
  const std::string mark = "error message = '";
  const std::size_t at = words.find(mark);
  if (at == std::string::npos) return words;
  const std::size_t start = at + mark.size();
  return words.substr(start, words.find('\'', start) - start);
}

}  // namespace

std::string error_text() {
  Words words;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &words);
  H5Eclear2(H5E_DEFAULT);
  if (words.outermost.empty()) return "HDF5 gives no reason";
  words.innermost = without_internals(words.innermost);
  return words.innermost == words.outermost ? words.outermost : words.outermost + " (" + words.innermost + ")";
}

}  // namespace rowmill::h5
