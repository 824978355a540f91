#include "core/cuda_loader.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>

#include "rowmill_version.hpp"

namespace rowmill {

namespace {

constexpr const char* module_name = "librowmill_cuda.so";

std::string open_error() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "unknown error";
}

/// A function of an open library, or null.
template <typename Function>
Function* find_function(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

/// Empty if there is a driver with a device, else why not. The prototypes are those of NVIDIA's CUDA Driver API
/// reference, "Initialization" and "Device Management".
std::string ask_driver(const std::string& name) {
  void* driver = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    const std::string error = open_error();
    const bool absent = error.find("No such file") != std::string::npos;
    return absent ? "no NVIDIA driver (" + name + " is not here)" : "the NVIDIA driver cannot be opened: " + error;
  }
  auto* const init = find_function<int(unsigned)>(driver, "cuInit");
  auto* const count_devices = find_function<int(int*)>(driver, "cuDeviceGetCount");
  if (init == nullptr || count_devices == nullptr) return name + " is not an NVIDIA driver's library";
  int devices = 0;
  int code = init(0);
  if (code == 0) code = count_devices(&devices);
  if (code == 0 && devices < 1) code = 100;
  return code == 0 ? std::string() : cuda_refusal(code);
}

CudaProbe open_module(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK) != 0) continue;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return {nullptr, std::string(module_name) + " cannot be opened: " + open_error()};
    auto* const get = find_function<const CudaModule*()>(library, cuda_module_symbol);
    const CudaModule* module = get != nullptr ? get() : nullptr;
    if (module == nullptr) return {nullptr, path + " is not a CUDA module of rowmill"};
    if (std::strcmp(module->version, version) != 0) {
      return {nullptr, path + " is of rowmill " + module->version + ", the program of " + version};
    }
    return {module, {}};
  }
  return {nullptr, std::string("this rowmill was built without CUDA (") + module_name +
                       " is neither beside the program nor in ../lib/rowmill)"};
}

CudaPlaces usual_places() {
  std::array<char, PATH_MAX> self = {};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  const std::string program(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  CudaPlaces places;
  for (const char* where : {"", "../lib/rowmill/", "../lib/"}) places.modules.push_back(folder + where + module_name);
  return places;
}

}  // namespace

std::string cuda_refusal(int code) {
  switch (code) {
    case 34:  // CUDA_ERROR_STUB_LIBRARY
      return "libcuda.so.1 is a stub for linking, not the driver (is a CUDA toolkit's stubs folder searched first?)";
    case 35:  // cudaErrorInsufficientDriver
      return "the NVIDIA driver is older than the CUDA of this build";
    case 100:  // CUDA_ERROR_NO_DEVICE
      return "no GPU is visible here (to the driver, or behind CUDA_VISIBLE_DEVICES)";
    case 803:  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
      return "the NVIDIA driver and its library are of different versions (a restart may be due)";
    default:
      return "the NVIDIA driver cannot be started (CUDA error " + std::to_string(code) + ")";
  }
}

CudaProbe open_cuda(const CudaPlaces& places) {
  try {
    std::string why_not = ask_driver(places.driver);
    if (!why_not.empty()) return {nullptr, std::move(why_not)};
    return open_module(places.modules);
  } catch (const std::exception& error) {
    return {nullptr, error.what()};
  }
}

CudaProbe probe_cuda() {
  static std::mutex mutex;
  static std::optional<CudaProbe> found;
  const std::scoped_lock lock(mutex);
  if (!found) found = open_cuda(usual_places());
  return *found;
}

}  // namespace rowmill
