// Large bodies, bodies that stall and large answers, all at once: does a small request get through
// meanwhile, and does the memory go back afterwards? serving_memory GAUNTLET
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/serving/http_client.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLargeBodies = 12;
constexpr int kStalledBodies = 17;
constexpr std::size_t kBodyBytes = 16 << 20;
constexpr double kPatience_s = 20;
constexpr double kMostGrowth = 0.10;
constexpr double kMostGrowthBytes = 16e6;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Many times as large once parsed, and then refused for its length.
std::string large_body(std::size_t bytes) {
  std::string text = R"({"prompt": [1)";
  text.reserve(bytes);
  while (text.size() + 4 < bytes) text += ",1";
  return text + "]}";
}

void send_large_answers(std::uint16_t port) {
  const std::string body = R"({"prompt": "a", "n": 16, "max_tokens": 200, "logprobs": 20,
                               "ignore_eos": true})";
  for (int i = 0; i < 4; ++i) ask(port, "POST", "/v1/completions", body);
}

double resident_bytes(const ServerProcess& server) {
  const auto state = server.state();
  return state ? state->resident_bytes : 1e18;
}

int run(const std::string& gauntlet) {
  // So that the bodies of all fit, but not beside those that stall; and that the cache of keys and
  // values, which fills as requests come, is full before.
  ServerProcess server(
      gauntlet, {"--max-all-bodies-bytes", std::to_string(300 << 20), "--kv-tokens", "8192"});
  Verdict verdict;
  // What the first requests make the server keep belongs to before.
  send_large_answers(server.port());
  ask(server.port(), "POST", "/tokenize", R"({"prompt": "once"})");
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // what is given back, is by now
  const double before = resident_bytes(server);

  std::vector<std::unique_ptr<Socket>> stalled;
  for (int i = 0; i < kStalledBodies; ++i) {
    stalled.push_back(std::make_unique<Socket>(server.port()));
    const std::string request = http_request("POST", "/tokenize", std::string(kBodyBytes, ' '));
    stalled.back()->send(std::string_view(request).substr(0, request.size() - 1000));
  }
  const std::string large = large_body(kBodyBytes);
  const auto begin = Clock::now();
  double small_s = 0, large_s = 0, most = 0;
  int num_refused = 0;
  std::vector<int> statuses(kLargeBodies, -1);
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < kLargeBodies; ++i) {
      clients.emplace_back([&, i] {
        for (int attempt = 0; attempt < 40; ++attempt) {
          const auto answer = ask(server.port(), "POST", "/v1/completions", large);
          statuses[i] = answer ? answer->status() : 0;
          if (statuses[i] != 503) return;
          std::this_thread::sleep_for(std::chrono::milliseconds(250));
        }
      });
    }
    clients.emplace_back([&] { send_large_answers(server.port()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    const auto asked = Clock::now();
    const auto small = ask(server.port(), "POST", "/tokenize",
                           "{\"prompt\": \"" + std::string(80 << 10, 'a') + "\"}");
    small_s = seconds_since(asked);
    verdict.claim(small && small->status() == 200, "a body of 80 KiB was answered meanwhile");
    most = resident_bytes(server);
    clients.clear();
    large_s = seconds_since(begin);
    num_refused = static_cast<int>(std::ranges::count(statuses, 400));
  }
  verdict.claim(num_refused == kLargeBodies,
                fmt::format("{} of {} large bodies were parsed, beside {} that stalled: {}",
                            num_refused, kLargeBodies, kStalledBodies, fmt::join(statuses, " ")));
  verdict.claim(small_s < large_s / 2,
                fmt::format("the small one took {:.2f} s, all of them {:.2f} s", small_s, large_s));
  stalled.clear();

  double after = 1e18;
  const double limit = before + std::max(before * kMostGrowth, kMostGrowthBytes);
  const auto ended = Clock::now();
  while (after > limit && seconds_since(ended) < kPatience_s) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    after = resident_bytes(server);
  }
  const std::string figures =
      fmt::format("resident: {:.0f} MB before, {:.0f} meanwhile, {:.0f} after {:.1f} s",
                  before / 1e6, most / 1e6, after / 1e6, seconds_since(ended));
  if (kMemoryIsMeasured) {
    verdict.claim(after <= limit, figures);
  } else {
    verdict.note(figures);
  }
  const std::string fault = server.end();
  verdict.claim(fault.empty(), "the server drained with its books balanced" + fault);
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: serving_memory GAUNTLET\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1]);
}
