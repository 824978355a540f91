// Rates of a GPU and of our operations on it: bus, device memory, cuBLAS, bias of tensor cores, products and moments.
// usage: gpu_bench [--json FILE] [--module librowmill_cuda.so] [--only vendor|module]
// One figure a line, "NAME VALUE UNIT", medians by events. Exit 77 without a GPU, 1 if a part failed.
#include "bench/gpu_bench.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rowmill::bench {

void Report::add(const std::string& name, double value, const std::string& unit) {
  figures_.push_back({name, unit, value});
  std::printf("%-36s %12.6g %s\n", name.c_str(), value, unit.c_str());
  std::fflush(stdout);
}

void Report::add_failure(const std::string& name, const std::string& why) {
  failures_.emplace_back(name, why);
  std::printf("%-36s       failed %s\n", name.c_str(), why.c_str());
  std::fflush(stdout);
}

void Report::write_json(const std::string& path) const {
  nlohmann::json all{{"figures", nlohmann::json::object()}, {"failures", nlohmann::json::object()}};
  for (const Figure& figure : figures_) all["figures"][figure.name] = {{"value", figure.value}, {"unit", figure.unit}};
  for (const auto& [name, why] : failures_) all["failures"][name] = why;
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

void attempt(Report& report, const std::string& name, const std::function<void()>& part) {
  try {
    part();
  } catch (const std::exception& error) {
    report.add_failure(name, error.what());
  }
}

}  // namespace rowmill::bench

int main(int argc, char** argv) {
  using namespace rowmill::bench;
  std::string json, only;
  std::string module = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "librowmill_cuda.so").string();
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    std::string* const value = option == "--json"     ? &json
                               : option == "--module" ? &module
                               : option == "--only"   ? &only
                                                      : nullptr;
    if (value == nullptr || i + 1 == argc) {
      std::fprintf(stderr, "usage: gpu_bench [--json FILE] [--module librowmill_cuda.so] [--only vendor|module]\n");
      return 2;
    }
    *value = argv[i + 1];
  }
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorString(found));
    return 77;
  }
  Report report;
  if (only != "module") measure_vendor(report);
  if (only != "vendor") measure_module(report, module);
  attempt(report, "json", [&] {
    if (!json.empty()) report.write_json(json);
  });
  return report.failed() ? 1 : 0;
}
