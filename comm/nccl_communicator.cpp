#include "comm/communicator.hpp"

namespace rowmill {

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, Backend&, std::chrono::milliseconds) {
  throw Error(ExitCode::device, "not built yet");
}

}  // namespace rowmill
