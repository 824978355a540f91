// NCCL's entry points from its library, opened at run time: where it is missing the CUDA module is still of use. The
// one file that knows nccl.h; the logic is in nccl_reduce.cpp and nccl_link.cpp.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <cstring>
#include <string>
#include <tuple>

#include "comm/nccl_reduce.hpp"

namespace rowmill {
namespace {

static_assert(ncclSuccess == NcclCalls::success && ncclInProgress == NcclCalls::in_progress);
static_assert(ncclInt8 == static_cast<int>(NcclCalls::Type::int8) &&
              ncclInt32 == static_cast<int>(NcclCalls::Type::int32) &&
              ncclInt64 == static_cast<int>(NcclCalls::Type::int64) &&
              ncclFloat64 == static_cast<int>(NcclCalls::Type::float64));
static_assert(ncclSum == static_cast<int>(NcclCalls::Op::sum) && ncclMax == static_cast<int>(NcclCalls::Op::max) &&
              ncclMin == static_cast<int>(NcclCalls::Op::min));
static_assert(sizeof(ncclUniqueId) == std::tuple_size_v<NcclCalls::Id>);

/// The address of a function of the library, with the type that nccl.h gives it.
template <typename Function>
Function* find(void* library, const char* name, std::string& missing) {
  void* const address = ::dlsym(library, name);
  if (address == nullptr) missing = name;
  return reinterpret_cast<Function*>(address);
}

ncclComm_t handle(NcclCalls::Comm comm) {
  return static_cast<ncclComm_t>(comm);
}

void add_life(NcclCalls& calls, void* library, std::string& missing) {
  calls.get_version = find<decltype(ncclGetVersion)>(library, "ncclGetVersion", missing);
  calls.get_unique_id = [f = find<decltype(ncclGetUniqueId)>(library, "ncclGetUniqueId", missing)](NcclCalls::Id* id) {
    ncclUniqueId theirs;
    const int result = f(&theirs);
    std::memcpy(id->data(), theirs.internal, id->size());
    return result;
  };
  calls.init_rank = [f = find<decltype(ncclCommInitRankConfig)>(library, "ncclCommInitRankConfig", missing)](
                        NcclCalls::Comm* comm, int ranks, const NcclCalls::Id& id, int rank) {
    ncclUniqueId theirs;
    std::memcpy(theirs.internal, id.data(), id.size());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t made = nullptr;
    const int result = f(&made, ranks, theirs, rank, &config);
    *comm = made;
    return result;
  };
  calls.finalize = [f = find<decltype(ncclCommFinalize)>(library, "ncclCommFinalize", missing)](
                       NcclCalls::Comm comm) -> int { return f(handle(comm)); };
  calls.destroy = [f = find<decltype(ncclCommDestroy)>(library, "ncclCommDestroy", missing)](
                      NcclCalls::Comm comm) -> int { return f(handle(comm)); };
  calls.abort = [f = find<decltype(ncclCommAbort)>(library, "ncclCommAbort", missing)](NcclCalls::Comm comm) -> int {
    return f(handle(comm));
  };
}

void add_work(NcclCalls& calls, void* library, std::string& missing) {
  calls.get_async_error = [f = find<decltype(ncclCommGetAsyncError)>(library, "ncclCommGetAsyncError", missing)](
                              NcclCalls::Comm comm, int* state) -> int {
    ncclResult_t theirs = ncclSuccess;
    const int result = f(handle(comm), &theirs);
    *state = theirs;
    return result;
  };
  calls.group_start = find<decltype(ncclGroupStart)>(library, "ncclGroupStart", missing);
  calls.group_end = find<decltype(ncclGroupEnd)>(library, "ncclGroupEnd", missing);
  calls.all_reduce = [f = find<decltype(ncclAllReduce)>(library, "ncclAllReduce", missing)](
                         void* data, std::size_t count, NcclCalls::Type type, NcclCalls::Op op, NcclCalls::Comm comm,
                         void* stream) -> int {
    return f(data, data, count, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), handle(comm),
             static_cast<cudaStream_t>(stream));
  };
  calls.describe = [text = find<decltype(ncclGetErrorString)>(library, "ncclGetErrorString", missing),
                    last = find<decltype(ncclGetLastError)>(library, "ncclGetLastError", missing)](
                       int result, NcclCalls::Comm comm) {
    std::string words = text(static_cast<ncclResult_t>(result));
    const char* const details = last(handle(comm));
    if (details != nullptr && *details != '\0') words += std::string(" (") + details + ")";
    return words;
  };
}

NcclLibrary open_nccl() {
  // never closed: its threads and ours may be in it until the process ends
  void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {std::nullopt, std::string("its library cannot be opened: ") + ::dlerror()};
  NcclCalls calls;
  std::string missing;
  add_life(calls, library, missing);
  add_work(calls, library, missing);
  if (!missing.empty()) return {std::nullopt, "its library, libnccl.so.2, has no " + missing};
  return {calls, {}};
}

/// NCCL connects the device that is current in the calling thread. Empty, or why that cannot be done.
std::string make_current(Backend& backend) {
  int device = 0;
  cudaError_t result = cudaStreamGetDevice(static_cast<cudaStream_t>(backend.native(backend.make_queue())), &device);
  if (result == cudaSuccess) result = cudaSetDevice(device);
  if (result == cudaSuccess) return {};
  return std::string("the device cannot be made current: ") + cudaGetErrorString(result);
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& ranks, Backend& backend,
                                                     std::chrono::milliseconds timeout) {
  NcclLibrary library = open_nccl();
  // Said to all ranks as a missing library is, so that they go on alike.
  if (library.calls) {
    if (const std::string why_not = make_current(backend); !why_not.empty()) library = {std::nullopt, why_not};
  }
  return make_nccl_communicator(ranks, backend, library, {.timeout = timeout});
}

}  // namespace rowmill
