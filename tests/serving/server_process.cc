#include "tests/serving/server_process.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/serving/http_client.h"

namespace gauntlet::tests {
namespace {

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr int kMaxPauses = 2400;

std::vector<std::string> command(const std::string& gauntlet,
                                 const std::vector<std::string>& options) {
  std::vector<std::string> argv = {gauntlet, "serve", "--port", "0", "--backend", "cpu"};
  argv.insert(argv.end(), options.begin(), options.end());
  return argv;
}

pid_t youngest_child() {
  std::ifstream children("/proc/thread-self/children");
  pid_t last = 0;
  for (pid_t child = 0; children >> child;) last = child;
  if (last <= 0) throw std::runtime_error("the kernel does not tell who the server is");
  return last;
}

}  // namespace

double metric(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const char after = text[at + name.size()];
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    if (!begins_line || (after != ' ' && after != '{')) continue;
    const std::size_t value = after == '{' ? text.find("} ", at) + 2 : at + name.size() + 1;
    return std::strtod(text.c_str() + value, nullptr);
  }
  return 0;
}

ServerState read_state(const std::string& text) {
  return {.num_running = metric(text, "gauntlet:num_requests_running"),
          .num_waiting = metric(text, "gauntlet:num_requests_waiting"),
          .kv_usage = metric(text, "gauntlet:kv_cache_usage_perc"),
          .preemptions = metric(text, "gauntlet:num_preemptions_total"),
          .resident_bytes = metric(text, "process_resident_memory_bytes"),
          .open_files = metric(text, "process_open_fds")};
}

ServerProcess::ServerProcess(const std::string& gauntlet, const std::vector<std::string>& options)
    : program_(command(gauntlet, options)), process_(youngest_child()) {
  for (int i = 0; i < kMaxPauses; ++i) {
    const std::string printed = program_.printed();
    if (const std::size_t end = printed.find('\n'); end != std::string::npos) {
      const std::size_t colon = printed.rfind(':', end);
      port_ = static_cast<std::uint16_t>(std::strtoul(printed.c_str() + colon + 1, nullptr, 10));
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
  throw std::runtime_error("the server never said where it listens");
}

void ServerProcess::hang_up() const { kill(process_, SIGHUP); }

std::optional<ServerState> ServerProcess::state() const {
  const auto answer = ask(port_, "GET", "/metrics");
  if (!answer || answer->status() != 200) return std::nullopt;
  return read_state(answer->body());
}

ServerState ServerProcess::wait_until_idle(double most_files) const {
  ServerState last{.num_running = -1};
  for (int i = 0; i < kMaxPauses; ++i) {
    if (const auto now = state()) last = *now;
    if (last.is_idle() && last.open_files <= most_files) break;
    std::this_thread::sleep_for(kPause);
  }
  return last;
}

std::string ServerProcess::end() {
  program_.terminate();
  const Outcome outcome = program_.wait();
  log_ = outcome.err;
  const std::size_t last_line = outcome.err.rfind("{\"event\":\"ended\"");
  const std::string ending =
      last_line == std::string::npos ? "nothing" : outcome.err.substr(last_line);
  if (outcome.code != 0 || ending.find(R"("integrity":"clean")") == std::string::npos) {
    constexpr std::size_t kShown = 4000;
    const std::size_t begin = outcome.err.size() > kShown ? outcome.err.size() - kShown : 0;
    return "the server ended with code " + std::to_string(outcome.code) + " and said " + ending +
           "\n" + outcome.err.substr(begin);
  }
  return "";
}

}  // namespace gauntlet::tests
