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

std::string error_text() {
  Words words;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &words);
  H5Eclear2(H5E_DEFAULT);
  if (words.outermost.empty()) return "HDF5 gives no reason";
  return words.innermost == words.outermost ? words.outermost : words.outermost + " (" + words.innermost + ")";
}

}  // namespace rowmill::h5
