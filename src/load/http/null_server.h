// A server that computes nothing: it says what it is told to, when it is told to. The client's own
// cost is measured against it, and its handling of faults tested.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace gauntlet::load::inline http {

struct NullRequest {
  std::int64_t index = 0;  // in order of arrival
  std::string target;
  std::string body;
};

struct NullAnswer {
  int status = 200;
  std::string body;  // said instead of a stream, where there is one
  std::int64_t num_tokens = 1;
  double interval_s = 0;          // before each token
  std::int64_t cut_after = -1;    // tokens, and the connection breaks
  std::int64_t error_after = -1;  // tokens, and an error event
  bool has_usage = true;
  bool has_done = true;
};

/// Listens on the loopback until destroyed. Each token's text is the steady clock's nanoseconds
/// when it was sent.
class NullServer {
 public:
  using Script = std::function<NullAnswer(const NullRequest&)>;

  /// The script is called on the server's thread.
  explicit NullServer(Script script);
  ~NullServer();
  NullServer(const NullServer&) = delete;
  NullServer& operator=(const NullServer&) = delete;

  std::uint16_t port() const;
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::thread thread_;
};

}  // namespace gauntlet::load::inline http
