#include "tests/serving/attacks.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

namespace gauntlet::tests {
namespace {

constexpr const char* kCompletions = "/v1/completions";
constexpr std::size_t kBodyBytes = 16 << 20;

/// Ten patterns that all have to hold, each of a letter somewhere: about 2^10 states. A title of
/// its own makes it another schema each time.
void sends_a_schema(Stage& stage) {
  std::string patterns;
  for (char letter = 'a'; letter < 'k'; ++letter) {
    patterns += fmt::format(R"({}{{"pattern":"{}"}})", patterns.empty() ? "" : ",", letter);
  }
  stage.ask("/v1/chat/completions",
            fmt::format(R"({{"messages":[{{"role":"user","content":"a"}}],"max_tokens":1,
"response_format":{{"type":"json_schema","json_schema":{{"name":"a","schema":
{{"title":"{}","type":"string","allOf":[{}]}}}}}}}})",
                        stage.next(), patterns));
}

/// As much as a whole answer may hold: 128 choices of 390 tokens with 21 values each.
void asks_for_many_log_probabilities(Stage& stage) {
  stage.ask(kCompletions, fmt::format(R"({{"prompt":"a","n":128,"max_tokens":390,"logprobs":20,
"ignore_eos":true,"seed":{}}})",
                                      stage.next()));
}

/// All but the end of a large body, and then silence.
void stalls_in_a_body(Stage& stage) {
  Stage::Connection connection(stage);
  const std::string request = http_request("POST", "/tokenize", std::string(kBodyBytes, ' '));
  connection.socket().send(std::string_view(request).substr(0, request.size() - 1000));
  connection.socket().receive();
}

void asks_for_many_choices(Stage& stage) {
  stage.ask(kCompletions, fmt::format(R"({{"prompt":"a","n":128,"max_tokens":1500,"stream":true,
"ignore_eos":true,"seed":{}}})",
                                      stage.next()));
}

/// Much is on its way, and none of it is read.
void reads_nothing(Stage& stage) {
  Stage::Connection connection(stage);
  const int few = 2048;
  setsockopt(connection.socket().handle(), SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
  connection.socket().send(
      http_request("POST", kCompletions,
                   fmt::format(R"({{"prompt":"a","n":4,"max_tokens":1500,"logprobs":5,"stream":true,
"ignore_eos":true,"seed":{}}})",
                               stage.next())));
  for (int i = 0; i < 200 && !stage.is_over(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Many times as large once parsed, and then refused for its length.
void sends_the_largest_body(Stage& stage) {
  static const std::string kBody = [] {
    std::string text = R"({"prompt": [1)";
    text.reserve(kBodyBytes);
    while (text.size() + 4 < kBodyBytes) text += ",1";
    return text + "]}";
  }();
  stage.ask(kCompletions, kBody);
}

}  // namespace

void play_honest_stream(Stage& stage) {
  stage.ask(kCompletions, fmt::format(R"({{"prompt":"once there was","max_tokens":400,
"stream":true,"ignore_eos":true,"seed":{}}})",
                                      stage.next()));
}

const std::vector<Attack>& all_attacks() {
  // 64 sequences run at once, the canary's among them.
  static const std::vector<Attack> kAttacks = {
      {"schemas that are hard to compile", 4, 4, sends_a_schema},
      {"n = 128 with log-probabilities", 1, 63, asks_for_many_log_probabilities},
      {"bodies that stall", 17, 17, stalls_in_a_body},
      {"n = 128, streamed", 1, 63, asks_for_many_choices},
      {"readers that do not read", 16, 63, reads_nothing},
      {"bodies of 16 MiB", 12, 12, sends_the_largest_body},
  };
  return kAttacks;
}

Stage::Connection::Connection(Stage& stage) : stage_(stage), socket_(stage.port_) {
  const std::lock_guard lock(stage_.mutex_);
  stage_.handles_.insert(socket_.handle());
  if (stage_.is_over_) ::shutdown(socket_.handle(), SHUT_RDWR);
}

Stage::Connection::~Connection() {
  const std::lock_guard lock(stage_.mutex_);
  stage_.handles_.erase(socket_.handle());
}

void Stage::end() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  for (const int handle : handles_) ::shutdown(handle, SHUT_RDWR);
}

void Stage::ask(const std::string& path, const std::string& body) {
  Connection connection(*this);
  Socket& socket = connection.socket();
  if (!socket.is_open()) return;
  socket.send(http_request("POST", path, body, "Connection: close\r\n"));
  const std::string first = socket.receive();
  while (!socket.receive().empty()) {
  }
  if (is_over() || first.empty()) return;
  ++num_answers;
  if (first.starts_with("HTTP/1.1 5")) ++num_server_faults;
}

Company::Company(std::uint16_t port, std::uint64_t seed, int count, void (*play)(Stage& stage))
    : stage_(port, seed) {
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back([this, play] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
      while (!stage_.is_over()) play(stage_);
    });
  }
}

void Company::end() {
  stage_.end();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace gauntlet::tests
