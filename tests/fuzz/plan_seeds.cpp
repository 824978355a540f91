// usage: plan_seeds ANSWERS PLANS: the plans that answer_fuzz's corpus makes, as plan_fuzz begins with them.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/answer_input.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    try {
      const std::vector<std::byte> plan = rowmill::serialise(rowmill::test::plan_of_input(input));
      std::ofstream(argv[2] / entry.path().filename(), std::ios::binary)
          .write(reinterpret_cast<const char*>(plan.data()), static_cast<std::streamsize>(plan.size()));
    } catch (const rowmill::Error&) {
      // no plan comes of it
    }
  }
  return 0;
}
