#include "tests/serving/actors.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/serving/http_client.h"

namespace gauntlet::tests {
namespace {

constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kChat = "/v1/chat/completions";

std::string words(Scene& scene, std::uint64_t most) {
  constexpr const char* kWords[] = {"the",   "house", "of",    "a",
                                    "river", "and",   "light", "falls",
                                    "under", "seven", "hills", "\xC3\xA9t\xC3\xA9"};
  std::string text = "once";
  for (std::uint64_t i = scene.random.next_below(most); i > 0; --i) {
    text += std::string(" ") + kWords[scene.random.next_below(std::size(kWords))];
  }
  return text;
}

/// Some begin alike, so that pages are shared.
std::string completion(Scene& scene, const char* more = "") {
  const std::string shared = scene.random.next_below(2) == 0
                                 ? "It was the best of times, it was the worst of times, "
                                 : "";
  return nlohmann::json{{"prompt", shared + words(scene, 60)},
                        {"max_tokens", 1 + scene.random.next_below(80)},
                        {"temperature", 0.01 * static_cast<double>(scene.random.next_below(150))},
                        {"ignore_eos", scene.random.next_below(2) == 0}}
      .dump()
      .insert(1, more);
}

std::string stream_fields() { return R"("stream":true,"stream_options":{"include_usage":true},)"; }

std::string wrong(const std::optional<Answer>& answer, const std::string& what) {
  return answer ? fmt::format("{}: {} {}", what, answer->status(), answer->body().substr(0, 200))
                : what + ": no answer";
}

std::string check_stream(const std::optional<Answer>& answer, const std::string& what) {
  if (!answer || answer->status() != 200) return wrong(answer, what);
  const auto tokens = read_stream(answer->body());
  return tokens && tokens->completion_tokens > 0 ? "" : wrong(answer, what + ", cut off");
}

/// A JSON body, and for errors OpenAI's object.
std::string check_json(const std::optional<Answer>& answer, int status, const std::string& what) {
  if (!answer || answer->status() != status) return wrong(answer, what);
  const auto json = nlohmann::json::parse(answer->body(), nullptr, false);
  if (json.is_discarded()) return wrong(answer, what + ", not JSON");
  return status < 400 || json.contains("error") ? "" : wrong(answer, what + ", no error object");
}

std::string streams(Scene& scene) {
  Socket socket(scene.port);
  for (std::uint64_t i = 1 + scene.random.next_below(3); i > 0; --i) {
    socket.send(http_request("POST", kCompletions, completion(scene, stream_fields().c_str())));
    if (auto fault = check_stream(socket.read_answer(), "a stream"); !fault.empty()) return fault;
  }
  return "";
}

std::string asks_for_all_at_once(Scene& scene) {
  const std::string choices = fmt::format(R"("n":{},)", 1 + scene.random.next_below(4));
  return check_json(ask(scene.port, "POST", kCompletions, completion(scene, choices.c_str())), 200,
                    "a whole completion");
}

std::string chats(Scene& scene) {
  const nlohmann::json body = {{"messages",
                                {{{"role", "system"}, {"content", "Be short."}},
                                 {{"role", "user"}, {"content", words(scene, 30)}}}},
                               {"max_tokens", 1 + scene.random.next_below(30)},
                               {"logprobs", true},
                               {"top_logprobs", 2}};
  return check_json(ask(scene.port, "POST", kChat, body.dump()), 200, "a chat");
}

std::string asks_small_things(Scene& scene) {
  const std::string text = words(scene, 200);
  auto fault = check_json(
      ask(scene.port, "POST", "/tokenize", nlohmann::json{{"prompt", text}}.dump()), 200, "tokens");
  if (fault.empty()) fault = check_json(ask(scene.port, "GET", "/v1/models"), 200, "models");
  if (fault.empty()) fault = check_json(ask(scene.port, "GET", "/health"), 200, "health");
  return fault;
}

std::string leaves_in_the_middle(Scene& scene) {
  Socket socket(scene.port);
  socket.send(http_request("POST", kCompletions, completion(scene, stream_fields().c_str())));
  for (std::uint64_t i = scene.random.next_below(4); i > 0; --i) socket.receive(200);
  if (scene.random.next_below(2) == 0) socket.reset();
  return "";
}

std::string leaves_before_the_answer(Scene& scene) {
  Socket socket(scene.port);
  socket.send(http_request("POST", kCompletions, completion(scene)));
  if (scene.random.next_below(2) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(scene.random.next_below(20)));
  }
  return "";
}

std::string reads_slowly(Scene& scene) {
  Socket socket(scene.port);
  const int few = 2048;
  setsockopt(socket.handle(), SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
  socket.send(http_request("POST", kCompletions, completion(scene, stream_fields().c_str())));
  Answer answer;
  while (!answer.is_done()) {
    const std::string bytes = socket.receive(256);
    if (bytes.empty() || !answer.feed(bytes)) return "a slow reader was cut off";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return check_stream(answer, "a slow reader");
}

/// Half a request, and then silence until the server gives up.
std::string stays_silent(Scene& scene) {
  Socket socket(scene.port);
  const std::string request = http_request("POST", kCompletions, completion(scene));
  socket.send(request.substr(0, scene.random.next_below(request.size())));
  return socket.receive().empty() ? "" : "half a request was answered";
}

/// Says that nothing follows, and then reads its answer, or leaves.
std::string half_closes(Scene& scene) {
  Socket socket(scene.port);
  socket.send(http_request("POST", kCompletions, completion(scene, stream_fields().c_str())));
  socket.end_sending();
  if (scene.random.next_below(2) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(scene.random.next_below(50)));
    return "";
  }
  return check_stream(socket.read_answer(), "a client that sends no more");
}

std::string sends_bytes_at_random(Scene& scene) {
  Socket socket(scene.port);
  std::string noise(1 + scene.random.next_below(2000), '\0');
  for (char& c : noise) c = static_cast<char>(scene.random.next_below(256));
  socket.send(noise + "\r\n\r\n");
  socket.end_sending();
  while (!socket.receive().empty()) {
  }
  return "";
}

std::string sends_bad_requests(Scene& scene) {
  const std::pair<const char*, int> kinds[] = {
      {R"({"prompt": )", 400},
      {R"([1, 2])", 400},
      {R"({"prompt": "a", "max_tokens": -1})", 400},
      {R"({"prompt": "a", "temperature": 1e300})", 400},
      {R"({"prompt": "a", "n": 99999999999999999999})", 400},
      {R"({"prompt": [99999999]})", 400},
      {R"({"prompt": "a", "logit_bias": {"-1": 5}})", 400},
      {R"({"prompt": "a", "stop": ["", ""]})", 400},
      {R"({"prompt": "a", "nonsense": true})", 400},
      {R"({"prompt": "a", "model": "another"})", 404},
      {"{\"prompt\": \"\xFF\xFE\"}", 400},
      {"\0\0\0", 400},
  };
  const auto& [body, status] = kinds[scene.random.next_below(std::size(kinds))];
  auto fault = check_json(ask(scene.port, "POST", kCompletions, body), status, body);
  if (!fault.empty()) return fault;
  const std::string deep(10000, '[');
  fault = check_json(ask(scene.port, "POST", kChat, deep), 400, "deep nesting");
  if (fault.empty()) fault = check_json(ask(scene.port, "GET", "/nowhere"), 404, "/nowhere");
  if (fault.empty()) fault = check_json(ask(scene.port, "DELETE", kChat), 405, "DELETE");
  return fault;
}

std::string sends_a_header_too_large(Scene& scene) {
  Socket socket(scene.port);
  socket.send(http_request("GET", "/health", "",
                           "X: " + std::string(scene.limits.header_bytes + 1, 'x') + "\r\n"));
  return check_json(socket.read_answer(), 431, "a large header");
}

std::string sends_a_body_too_large(Scene& scene) {
  Socket socket(scene.port);
  const std::string body(scene.limits.body_bytes + 1, ' ');
  socket.send(http_request("POST", kCompletions, body));  // may be cut short by the answer
  return check_json(socket.read_answer(), 413, "a large body");
}

std::string sends_the_largest_body(Scene& scene) {
  const std::string head = R"({"prompt": ")";
  const std::string tail = R"("})";
  const std::string text(scene.limits.body_bytes - head.size() - tail.size(), 'a');
  return check_json(ask(scene.port, "POST", kCompletions, head + text + tail), 400,
                    "a prompt that is too long");
}

std::string sends_chunks(Scene& scene) {
  Socket socket(scene.port);
  std::string text =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : std::string(R"({"prompt": "in small parts"})")) {
    text += std::string("1\r\n") + c + "\r\n";
  }
  socket.send(text + "0\r\n\r\n");
  return check_json(socket.read_answer(), 200, "a body in chunks");
}

/// Trailers and extensions of chunks are headers by another name.
std::string sends_endless_trailers(Scene& scene) {
  Socket socket(scene.port);
  std::string text =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2\r\n{}\r\n0\r\n";
  for (int i = 0; i < 20000; ++i) text += "Trailer-Of-Mine: x\r\n";
  socket.send(text);
  return check_json(socket.read_answer(), 431, "endless trailers");
}

std::string pipelines_garbage(Scene& scene) {
  Socket socket(scene.port);
  socket.send(http_request("GET", "/health") + http_request("GET", "/v1/models") +
              http_request("POST", kCompletions, completion(scene)) + "\x01\x02 garbage\r\n\r\n");
  for (const char* what : {"the first in a pipe", "the second", "the third"}) {
    if (auto fault = check_json(socket.read_answer(), 200, what); !fault.empty()) return fault;
  }
  return check_json(socket.read_answer(), 400, "garbage in a pipe");
}

}  // namespace

const std::vector<Act>& all_acts() {
  static const std::vector<Act> kActs = {
      {"streams", 30, streams},
      {"whole answers", 15, asks_for_all_at_once},
      {"chats", 10, chats},
      {"small questions", 8, asks_small_things},
      {"left in the middle", 12, leaves_in_the_middle},
      {"left before the answer", 6, leaves_before_the_answer},
      {"slow readers", 4, reads_slowly},
      {"silent halves", 2, stays_silent},
      {"half closed", 4, half_closes},
      {"random bytes", 6, sends_bytes_at_random},
      {"bad requests", 6, sends_bad_requests},
      {"large headers", 2, sends_a_header_too_large},
      {"bodies too large", 1, sends_a_body_too_large},
      {"largest bodies", 1, sends_the_largest_body},
      {"chunked bodies", 2, sends_chunks},
      {"endless trailers", 1, sends_endless_trailers},
      {"pipelined garbage", 4, pipelines_garbage},
  };
  return kActs;
}

}  // namespace gauntlet::tests
