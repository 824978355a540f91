// The HDF5 helper and what the program makes of its death, silence and lies. Fake helpers are shell scripts.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "io/h5_helper/protocol.hpp"
#include "io/h5_helper_answer.hpp"
#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

using namespace std::chrono_literals;

class Helper : public ::testing::Test {
 protected:
  Helper() {
    model_ = random_model(random_, {60, 4}, {DType::f64, false});
    // n-bit is decoded by HDF5 alone
    write_model(folder_ / "a.h5", model_, {.chunk = {10, 4}, .more = [](hid_t list) { H5Pset_nbit(list); }});
  }

  std::string script(const std::string& body) {
    const std::string path = folder_ / "helper.sh";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    ::chmod(path.c_str(), 0755);
    return path;
  }

  InputRequest request(const std::string& helper = {}) {
    InputRequest r = request_for(folder_ / "a.h5:/X");
    r.helper = helper;
    r.time_limit = 20s;
    return r;
  }

  Error plan_error(const std::string& body) {
    const InputRequest r = request(script(body));
    return error_of([&] { plan_input(r); });
  }

  /// A helper that gives this answer to whatever it is asked.
  Error answer_error(const std::string& json, const std::string& tail = {}) {
    h5::MessageHeader header;
    header.json_bytes = static_cast<std::uint32_t>(json.size());
    header.tail_bytes = tail.size();
    return bytes_error(std::string(reinterpret_cast<const char*>(&header), sizeof header) + json + tail);
  }
  Error bytes_error(const std::string& bytes) {
    std::ofstream(folder_ / "answer", std::ios::binary) << bytes;
    return plan_error(std::string("cat '") + (folder_ / "answer") + "' >&3; exec sleep 60");
  }

  static nlohmann::json good_plan() {
    return {{"shape", {60, 4}}, {"dtype", 3},
            {"swapped", false}, {"stored_type", "float64"},
            {"storage", "x"},   {"way", "chunks"},
            {"chunk", {10, 4}}, {"fill", "0000000000000000"},
            {"planted", false}, {"warnings", nlohmann::json::array()}};
  }

  ScratchFolder folder_;
  std::mt19937_64 random_{fresh_seed()};
  Model model_;
};

bool names(const Error& e, const std::string& text) {
  return std::string(e.what()).find(text) != std::string::npos;
}

#define EXPECT_INPUT_ERROR(error, text)                  \
  do {                                                   \
    const Error caught = (error);                        \
    EXPECT_EQ(caught.code(), ExitCode::input);           \
    EXPECT_TRUE(names(caught, "a.h5")) << caught.what(); \
    EXPECT_TRUE(names(caught, text)) << caught.what();   \
  } while (false)

TEST_F(Helper, ThatDiesBySignal_IsAnInputErrorNamingFileAndSignal) {
  EXPECT_INPUT_ERROR(plan_error("kill -SEGV $$"), "HDF5 itself crashed (signal 11)");
  EXPECT_INPUT_ERROR(plan_error("kill -ABRT $$"), "signal 6");
}

/// The system's doing, or somebody's: it says nothing about the file.
TEST_F(Helper, ThatIsKilled_IsAFailureThatDoesNotBlameTheFile) {
  for (const char* signal : {"KILL", "TERM"}) {
    const Error e = plan_error(std::string("kill -") + signal + " $$");
    EXPECT_EQ(e.code(), ExitCode::failed);
    EXPECT_TRUE(names(e, "was killed")) << e.what();
    EXPECT_FALSE(names(e, "damaged")) << e.what();
  }
}

TEST_F(Helper, ThatUsesUpItsProcessorTime_IsAnInputError) {
  EXPECT_INPUT_ERROR(plan_error("kill -XCPU $$"), "processor time");
}

TEST_F(Helper, ThatEnds_IsAnInputError) {
  EXPECT_INPUT_ERROR(plan_error("exit 7"), "exit 7");
}

TEST_F(Helper, ThatGivesNoAnswer_IsKilledAtTheDeadline) {
  InputRequest r = request(script(std::string("echo $$ > '") + (folder_ / "pid") + "'; exec sleep 600"));
  r.time_limit = 300ms;
  EXPECT_INPUT_ERROR(error_of([&] { plan_input(r); }), "no answer within");
  pid_t pid = 0;
  std::ifstream(folder_ / "pid") >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_EQ(::kill(pid, 0), -1) << "the helper is still there";
}

TEST_F(Helper, ThatSendsGarbage_IsAnInputError) {
  EXPECT_INPUT_ERROR(bytes_error(std::string(64, 'x')), "makes no sense");
  EXPECT_INPUT_ERROR(answer_error("not json"), "makes no sense");
  EXPECT_INPUT_ERROR(answer_error("[1, 2]"), "makes no sense");
  EXPECT_INPUT_ERROR(answer_error("{}"), "makes no sense");
  h5::MessageHeader huge;
  huge.json_bytes = 0xffffffffU;
  EXPECT_INPUT_ERROR(bytes_error(std::string(reinterpret_cast<const char*>(&huge), sizeof huge)), "makes no sense");
  huge.json_bytes = 2;
  huge.tail_bytes = ~0ULL;
  EXPECT_INPUT_ERROR(bytes_error(std::string(reinterpret_cast<const char*>(&huge), sizeof huge)), "makes no sense");
}

TEST_F(Helper, WhoseOwnErrorIsAnAnswer_IsToldInOneLine) {
  EXPECT_INPUT_ERROR(answer_error(R"({"error": "a\nb\u001b[31mc"})"), "a\\nb\\x1b[31mc");
  EXPECT_INPUT_ERROR(answer_error(R"({"error": 3})"), "HDF5 failed");
}

TEST_F(Helper, WhosePlanIsImpossible_IsRefusedBeforeAnythingIsAllocated) {
  const nlohmann::json good = good_plan();
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed[key] = value;
    return changed.dump();
  };
  const auto table = [](std::int64_t index, std::int64_t address, std::int64_t bytes = 320) {
    const h5::ChunkEntry entry{index, address, bytes};
    return std::string(reinterpret_cast<const char*>(&entry), sizeof entry);
  };
  EXPECT_INPUT_ERROR(answer_error(with("shape", {-1, 4})), "");
  EXPECT_INPUT_ERROR(answer_error(with("shape", {"a", 4})), "makes no sense");
  EXPECT_INPUT_ERROR(answer_error(with("shape", {1ULL << 63, 4})), "negative or too large");
  EXPECT_INPUT_ERROR(answer_error(with("shape", {1ULL << 40, 1ULL << 40})), "more than any file holds");
  EXPECT_INPUT_ERROR(answer_error(with("shape", {60, 1ULL << 32})), "columns");
  EXPECT_INPUT_ERROR(answer_error(with("shape", {60, 0})), "no columns");
  EXPECT_INPUT_ERROR(answer_error(with("shape", nlohmann::json::array())), "scalar");
  EXPECT_INPUT_ERROR(answer_error(with("dtype", 99)), "makes no sense");
  EXPECT_INPUT_ERROR(answer_error(with("way", "magic")), "makes no sense");
  EXPECT_INPUT_ERROR(answer_error(with("fill", "00")), "fill value");
  EXPECT_INPUT_ERROR(answer_error(with("chunk", {10})), "storage chunks");
  EXPECT_INPUT_ERROR(answer_error(with("chunk", {0, 4})), "storage chunks");
  EXPECT_INPUT_ERROR(answer_error(with("chunk", {1ULL << 40, 1ULL << 40})), "storage chunks");
  EXPECT_INPUT_ERROR(answer_error(good.dump(), table(0, 1LL << 50)), "beyond the end");
  EXPECT_INPUT_ERROR(answer_error(good.dump(), table(0, -8)), "beyond the end");
  EXPECT_INPUT_ERROR(answer_error(good.dump(), table(0, 0, 0)), "0 bytes long");
  EXPECT_INPUT_ERROR(answer_error(good.dump(), table(0, 0, 319)), "319 bytes long");
  const std::string gzip = with("filters", {{1, {4}}});
  EXPECT_INPUT_ERROR(answer_error(gzip, table(0, 1LL << 50, 100)), "beyond the end");
  EXPECT_INPUT_ERROR(answer_error(gzip, table(0, INT64_MAX - 50, 100)), "beyond the end");
  EXPECT_INPUT_ERROR(answer_error(gzip, table(0, 0, 1LL << 40)), "bytes long");
  EXPECT_INPUT_ERROR(answer_error(gzip, table(0, 0, -1)), "bytes long");
  EXPECT_INPUT_ERROR(answer_error(with("filters", {{99, nlohmann::json::array()}})), "filter 99");
  EXPECT_INPUT_ERROR(answer_error(with("filters", {{"gzip", 4}})), "makes no sense");
  EXPECT_INPUT_ERROR(answer_error(good.dump(), table(6, 0)), "damaged");
  EXPECT_INPUT_ERROR(answer_error(good.dump(), table(1, 0) + table(1, 0)), "damaged");
}

TEST_F(Helper, WhosePlanReachesOutOfTheFile_IsRefused) {
  const nlohmann::json good = good_plan();
  nlohmann::json contiguous = good;
  contiguous["way"] = "contiguous";
  contiguous["offset"] = 1LL << 50;
  EXPECT_INPUT_ERROR(answer_error(contiguous.dump()), "truncated or damaged");
  contiguous["offset"] = -1;
  EXPECT_INPUT_ERROR(answer_error(contiguous.dump()), "truncated or damaged");
  nlohmann::json unwritten = good;
  unwritten["way"] = "fill";
  unwritten["shape"] = {1LL << 50, 4};
  EXPECT_INPUT_ERROR(answer_error(unwritten.dump()), "nothing was ever written");
}

TEST_F(Helper, ThatDiesWhileReading_IsAnInputErrorWithItsRows) {
  const std::vector<std::byte> plan = plan_input(request());
  const auto source = make_source(plan, request(script("kill -BUS $$")));
  const PoisonedBuffer buffer(source->bytes_for({20, 10}));
  const Error e = error_of([&] { source->read({20, 10}, buffer.span()); });
  EXPECT_INPUT_ERROR(e, "signal 7");
  const auto healthy = make_source(plan, request());
  EXPECT_TRUE(reads_as(*healthy, model_, {20, 10}));
}

TEST_F(Helper, ThatLiesAboutFetchedStorageChunks_IsAnInputError) {
  Model many = random_model(random_, {5000, 2}, {DType::u8, false});
  write_model(folder_ / "a.h5", many, {.chunk = {1, 2}, .gzip = 1});
  const std::vector<std::byte> plan = plan_input(request());
  const auto frame = [](const std::string& json, const std::string& tail) {
    h5::MessageHeader header;
    header.json_bytes = static_cast<std::uint32_t>(json.size());
    header.tail_bytes = tail.size();
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + json + tail;
  };
  const auto read_error = [&](const h5::ChunkEntry& entry) {
    std::ofstream(folder_ / "answer", std::ios::binary)
        << frame(R"({"shape": [5000, 2]})", "") +
               frame("{}", std::string(reinterpret_cast<const char*>(&entry), sizeof entry));
    const std::string fake = script(std::string("cat '") + (folder_ / "answer") + "' >&3; exec sleep 60");
    const auto source = make_source(plan, request(fake));
    const PoisonedBuffer buffer(source->bytes_for({7, 1}));
    return error_of([&] { source->read({7, 1}, buffer.span()); });
  };
  EXPECT_INPUT_ERROR(read_error({8, 0, 10}), "makes no sense");
  EXPECT_INPUT_ERROR(read_error({7, 0, 1 << 30}), "makes no sense");
  EXPECT_INPUT_ERROR(read_error({7, 1LL << 40, 10}), "makes no sense");
  EXPECT_INPUT_ERROR(read_error({7, -2, 10}), "makes no sense");
  EXPECT_INPUT_ERROR(read_error({7, 0, 10}), "storage chunk (7, 0)");
}

TEST_F(Helper, ThatIsNotThere_IsAFailureNamingIt) {
  const Error e = error_of([&] { plan_input(request("/nowhere/helper")); });
  EXPECT_EQ(e.code(), ExitCode::failed);
  EXPECT_TRUE(names(e, "/nowhere/helper"));
  EXPECT_EQ(error_of([] { find_helper("no-such-helper"); }).code(), ExitCode::failed);
}

TEST_F(Helper, GetsNeitherDescriptorsNorPluginPathOfTheProgram) {
  const int stray = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  ::setenv("HDF5_PLUGIN_PATH", "/tmp", 1);
  plan_error(std::string("env > '") + (folder_ / "env") + "'; exec ls /proc/self/fd > '" + (folder_ / "fds") + "'");
  ::unsetenv("HDF5_PLUGIN_PATH");
  ::close(stray);
  std::ifstream fds(folder_ / "fds"), env(folder_ / "env");
  const std::string env_text((std::istreambuf_iterator<char>(env)), {});
  EXPECT_NE(env_text.find("HDF5_USE_FILE_LOCKING=FALSE"), std::string::npos);
  EXPECT_EQ(env_text.find("HDF5_PLUGIN_PATH"), std::string::npos);
  std::vector<int> open_ones;
  for (int fd = 0; fds >> fd;) open_ones.push_back(fd);
  EXPECT_EQ(open_ones.size(), 6U);  // the five that it is given, and the folder that ls reads
}

TEST_F(Helper, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    H5HelperClient client(find_helper("rowmill-h5-helper"), "a.h5", {}, 0);
    client.ask({{"op", "list"}}, folder_ / "a.h5");
    pid = client.process();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(Helper, EndsWhenTheProgramIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    const H5HelperClient client(find_helper("rowmill-h5-helper"), "a.h5", {}, 0);
    const pid_t helper = client.process();
    if (::write(ends[1], &helper, sizeof helper) < 0) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t helper = 0;
  ASSERT_EQ(::read(ends[0], &helper, sizeof helper), static_cast<ssize_t>(sizeof helper));
  ::waitpid(program, nullptr, 0);
  const auto is_running = [&] {
    std::ifstream stat("/proc/" + std::to_string(helper) + "/stat");
    std::string id, name, state;
    return static_cast<bool>(stat >> id >> name >> state) && state != "Z";
  };
  for (int i = 0; i < 500 && is_running(); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(is_running());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Helper, ThatNeedsTooMuchMemory_IsAnInputError) {
#ifdef ROWMILL_SANITIZED
  GTEST_SKIP() << "sanitizers reserve address space without bound";
#endif
  // one storage chunk of 512 MiB, compressed to little
  Model big{{512, 1 << 20}, {DType::u8, false}, {}};
  big.bytes.resize(512u << 20);
  write_model(folder_ / "a.h5", big, {.chunk = {512, 1 << 20}, .gzip = 1});
  InputRequest r = request();
  r.memory_limit = 400 << 20;
  EXPECT_INPUT_ERROR(error_of([&] { open_source(r); }), "too large for the memory");
  write_model(folder_ / "a.h5", big, {.chunk = {512, 1 << 20}, .more = [](hid_t list) { H5Pset_nbit(list); }});
  const auto source = open_source(r);
  const PoisonedBuffer buffer(source->bytes_for({0, 1}));
  EXPECT_INPUT_ERROR(error_of([&] { source->read({0, 1}, buffer.span()); }), "memory");
}

TEST_F(Helper, StartedByHand_SaysSo) {
  EXPECT_EQ(WEXITSTATUS(std::system((std::string("'") + find_helper("rowmill-h5-helper") + "' 2> /dev/null").c_str())),
            2);
}

}  // namespace
}  // namespace rowmill::test
