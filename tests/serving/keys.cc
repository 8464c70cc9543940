// Several keys: who may ask, whose name the log and the metrics show, and what happens when the
// file of keys changes under a server that runs. serving_keys GAUNTLET
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/serving/http_client.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

constexpr int kMaxPauses = 400;

std::optional<Answer> ask_with(std::uint16_t port, const std::string& key,
                               const std::string& method, const std::string& path,
                               const std::string& body = "") {
  Socket socket(port);
  socket.send(http_request(method, path, body,
                           "Authorization: Bearer " + key + "\r\nConnection: close\r\n"));
  return socket.read_answer();
}

int run(const std::string& gauntlet) {
  const TemporaryFolder folder;
  const std::string file = folder / "keys";
  const auto write = [&](const std::string& text) {
    std::ofstream(file) << text;
    chmod(file.c_str(), 0600);
  };
  write("# name key share\nalice key-of-alice 2\nbob key-of-bob\n");
  ServerProcess server(gauntlet, {"--api-keys", file, "--api-key", "key-of-all"});
  Verdict verdict;
  const auto status = [&](const std::string& key) {
    const auto answer = ask_with(server.port(), key, "POST", "/v1/completions",
                                 R"({"prompt": "once", "max_tokens": 3})");
    return answer ? answer->status() : 0;
  };
  // A signal takes a moment to arrive.
  const auto becomes = [&](const std::string& key, int wanted) {
    for (int i = 0; i < kMaxPauses && status(key) != wanted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return status(key) == wanted;
  };
  verdict.claim(status("key-of-alice") == 200 && status("key-of-bob") == 200 &&
                    status("key-of-all") == 200 && status("key-of-carol") == 401,
                "those with a key are answered, others get 401");
  write("bob key-of-bob\ncarol key-of-carol 0.5\n");
  server.hang_up();
  verdict.claim(becomes("key-of-carol", 200), "a key that was added holds after SIGHUP");
  verdict.claim(status("key-of-alice") == 401 && status("key-of-all") == 200,
                "one that was removed does not, that of --api-key still does");
  write("nonsense\n");
  server.hang_up();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  verdict.claim(status("key-of-carol") == 200, "a file with a fault changes nothing");
  const auto metrics = ask_with(server.port(), "key-of-bob", "GET", "/metrics");
  const std::string text = metrics ? metrics->body() : "";
  verdict.claim(text.find("key=\"alice\"} 1\n") != std::string::npos &&
                    text.find("key=\"default\"}") != std::string::npos &&
                    text.find("key-of") == std::string::npos,
                "metrics count by name, and show no key");
  const std::string fault = server.end();
  verdict.claim(fault.empty(), "the server drained with its books balanced" + fault);
  const std::string& log = server.log();
  verdict.claim(log.find("\"key\":\"alice\"") != std::string::npos &&
                    log.find("keys_read") != std::string::npos &&
                    log.find("keys_kept") != std::string::npos &&
                    log.find("key-of") == std::string::npos,
                "the log names who asked, what was read, and shows no key");
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: serving_keys GAUNTLET\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1]);
}
