// rowmill-h5-helper: the only program that opens HDF5 files it has no reason to trust. Started by rowmill with a socket
// and shared memory (protocol.hpp); of no use by hand.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

#include "io/h5_helper/channel.hpp"
#include "io/h5_helper/chunks.hpp"
#include "io/h5_helper/groups.hpp"
#include "io/h5_helper/listing.hpp"
#include "io/h5_helper/opened.hpp"
#include "io/h5_helper/plan.hpp"
#include "io/h5_helper/protocol.hpp"
#include "io/h5_helper/read.hpp"
#include "io/h5_helper/view.hpp"
#include "io/h5_helper/virtual_rows.hpp"

namespace rowmill::h5 {
namespace {

/// Memory that the program has mapped too; unmapped at exit.
std::span<std::byte> map_shared() {
  struct stat status = {};
  if (::fstat(kSharedMemory, &status) != 0 || status.st_size == 0) return {};
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kSharedMemory, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<std::byte*>(memory), bytes};
}

void limit_memory(const char* bytes) {
  rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;  // virtual data sets may have many sources
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
#ifndef ROWMILL_SANITIZED
  const auto limit = static_cast<rlim_t>(std::strtoull(bytes, nullptr, 10));
  rlimit memory = {limit, limit};
  ::setrlimit(RLIMIT_AS, &memory);
#else
  static_cast<void>(bytes);  // sanitizers reserve address space without bound
#endif
}

/// Processor time from now on, after which the system ends this program (a hostile file can make HDF5 run for ever).
void limit_processor_time(rlim_t seconds) {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto spent = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1;
  rlimit limit = {seconds == RLIM_INFINITY ? RLIM_INFINITY : spent + seconds, RLIM_INFINITY};
  ::setrlimit(RLIMIT_CPU, &limit);
}

/// Ends this program at once when rowmill goes, even in the middle of a read. (The kernel's parent-death signal would
/// come too early: when the thread that started the helper ends.)
void watch_parent() {
  std::thread([] {
    pollfd socket = {kSocket, 0, 0};
    while (::poll(&socket, 1, -1) < 0 || (socket.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) {
    }
    ::_exit(0);
  }).detach();
}

/// Bytes this program has asked of files so far.
std::int64_t bytes_asked() {
  const int file = ::open("/proc/self/io", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 64> text = {};
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  long long asked = 0;
  return got > 0 && std::sscanf(text.data(), "rchar: %lld", &asked) == 1 ? asked : 0;
}

/// Serves one file.
class Server {
 public:
  Server() : shared_(map_shared()) {}

  /// False when rowmill is gone.
  bool serve_one() {
    std::optional<Request> request = receive_request(kSocket);
    if (!request) return false;
    PlanAnswer answer;
    try {
      answer = handle(*request);
    } catch (const std::bad_alloc&) {
      answer.json = {{"error", "HDF5 needs more memory for it than the helper may use"}};
    } catch (const std::exception& e) {
      answer.json = {{"error", std::string(e.what()).substr(0, 1000)},
                     {"usage", dynamic_cast<const WrongUsage*>(&e) != nullptr}};
      answer.chunks.clear();
    }
    return send_answer(kSocket, answer.json, std::as_bytes(std::span(answer.chunks)));
  }

 private:
  PlanAnswer handle(const Request& request) {
    const auto& op = request.json.at("op").get_ref<const std::string&>();
    if (op == "read") return read(request);
    if (op == "chunks") return fetch(request);
    limit_processor_time(kMetadataSeconds);
    PlanAnswer answer = op == "list" ? list(request) : open_or_tell(request);
    limit_processor_time(RLIM_INFINITY);
    return answer;
  }

  /// HDF5 finds companions beside the file; the helper's working directory is the only folder it may look in.
  void open_path(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos && ::chdir(slash == 0 ? "/" : path.substr(0, slash).c_str()) != 0) {
      throw Refusal("its folder cannot be entered");
    }
    name_ = slash == std::string::npos ? path : path.substr(slash + 1);
    file_ = open_file("./" + name_);
  }

  PlanAnswer list(const Request& request) {
    open_path(request.tail);
    return {list_datasets(file_, name_, request.json.value("format", "auto")), {}};
  }

  PlanAnswer open_or_tell(const Request& request) {
    try {
      return open(request);
    } catch (const NoDataset& e) {
      throw Refusal(std::string(e.what()) + "; " + held_in(file_, name_, e.group()));
    }
  }

  PlanAnswer open(const Request& request) {
    const std::size_t zero = request.tail.find('\0');
    if (zero == std::string::npos) throw std::runtime_error("not a request");
    if (file_ < 0) open_path(request.tail.substr(0, zero));  // else it has been listed
    const std::string path = request.tail.substr(zero + 1);
    const bool plan = request.json.at("op") == "plan";
    axis_ = request.json.at("axis").get<int>();
    Format format;
    if (plan) {  // else it is opened to be read: it must not be open already, or HDF5 ignores the cache asked for
      const Id object = open_any(file_, path);
      format = format_of_object(file_, object, name_, request.json.value("format", "hdf5"));
      if (H5Iget_type(object) == H5I_GROUP) {
        if (auto group = plan_group(file_, object, path, format, axis_)) return {std::move(*group), {}};
      }
    }
    const ChunkCache cache{request.json.value("cache", std::int64_t{1} << 20),
                           request.json.value("slots", std::int64_t{521})};
    dataset_.emplace(file_, path, cache);
    if (dataset_->shape().empty()) return make_plan(file_, *dataset_);  // refuses
    if (axis_ < 0 || static_cast<std::size_t>(axis_) >= dataset_->shape().size()) {
      throw WrongUsage("it has no axis " + std::to_string(axis_) + ", its shape is " + shape_text(*dataset_));
    }
    if (dataset_->layout() == H5D_VIRTUAL) virtual_rows_ = VirtualRows(dataset_->creation(), axis_);
    if (dataset_->is_member() && axis_ != 0) throw WrongUsage("rows of a table are its axis 0");
    if (plan) return plan_dataset(path, format);
    if (const std::string why = why_not(*dataset_); !why.empty()) throw Refusal(why);
    return {{{"shape", dataset_->shape()}}, {}};
  }

  PlanAnswer plan_dataset(const std::string& path, const Format& format) {
    if (const std::string why = why_not_in(format, dataset_->id()); !why.empty()) throw Refusal(why);
    PlanAnswer answer = make_plan(file_, *dataset_);
    apply_view(file_, *dataset_, path, format, axis_, answer.json);
    return answer;
  }

  PlanAnswer read(const Request& request) {
    if (!dataset_) throw std::runtime_error("no data set is open");
    const std::int64_t before = bytes_asked();
    const auto first = request.json.at("first").get<std::int64_t>(),
               count = request.json.at("count").get<std::int64_t>();
    const bool is_virtual = dataset_->layout() == H5D_VIRTUAL;
    const std::size_t bytes =
        is_virtual ? read_virtual(first, count) : read_rows(*dataset_, axis_, first, count, shared_);
    return {{{"bytes", bytes}, {"asked", bytes_asked() - before}}, {}};
  }

  std::size_t read_virtual(std::int64_t first, std::int64_t count) {
    if (axis_ != 0 || !virtual_rows_.many()) {
      const std::size_t bytes = read_rows(*dataset_, axis_, first, count, shared_);
      check_descriptors();
      return bytes;
    }
    std::size_t bytes = 0;
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t rows = virtual_rows_.at_once(first + done, count - done);
      dataset_->reopen();
      bytes += read_rows(*dataset_, axis_, first + done, rows, shared_.subspan(std::min(bytes, shared_.size())));
      check_descriptors();
      done += rows;
    }
    return bytes;
  }

  PlanAnswer fetch(const Request& request) {
    if (!dataset_) throw std::runtime_error("no data set is open");
    std::vector<std::int64_t> wanted(request.tail.size() / sizeof(std::int64_t));
    std::memcpy(wanted.data(), request.tail.data(), wanted.size() * sizeof(std::int64_t));
    return {nlohmann::json::object(), fetch_chunks(*dataset_, wanted, shared_)};
  }

  std::span<std::byte> shared_;
  std::string name_;  ///< of the file, without its folder
  Id file_;
  std::optional<OpenedDataset> dataset_;
  VirtualRows virtual_rows_;
  int axis_ = 0;
};

int serve(const char* memory_limit) {
  limit_memory(memory_limit);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  watch_parent();
  if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) < 0) return 1;
  H5PLset_loading_state(0);
  Server server;
  while (server.serve_one()) {
  }
  return 0;
}

}  // namespace
}  // namespace rowmill::h5

int main(int argc, char** argv) {
  int type = 0;
  socklen_t size = sizeof type;
  if (argc != 2 || ::getsockopt(rowmill::h5::kSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs("rowmill-h5-helper is started by rowmill\n", stderr);
    return 2;
  }
  const int status = rowmill::h5::serve(argv[1]);
  // without destructors of libraries: HDF5 may be in any state after a damaged file
  ::_exit(status);
}
