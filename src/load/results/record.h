// What the client saw of one request. Times are seconds since the run began, on the steady clock.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gauntlet::load::inline results {

enum class Outcome {
  ok,
  connect,  // no connection, or lost before a byte of the answer
  timeout,
  http_status,   // an answer other than 200
  server_error,  // an error in the stream
  stream_cut,    // it ended before its end
  protocol,      // not what OpenAI's API sends
  interrupted,   // by the user of this client
};
const char* name_of(Outcome outcome);

struct RequestRecord {
  std::int64_t index = 0;
  double scheduled_s = 0;  // when it was due; latencies count from here
  double sent_s = 0;
  double first_s = 0;  // its first token, or its end without any
  double end_s = 0;
  std::vector<float> gaps_s;  // between events that carry tokens
  std::int64_t num_events = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t output_tokens = 0;
  bool has_usage = false;  // the server counted; otherwise an event counts as a token
  Outcome outcome = Outcome::ok;
  int http_status = 0;
  std::string words;  // of an error

  bool is_ok() const { return outcome == Outcome::ok; }
  double ttft_s() const { return first_s - scheduled_s; }
  double e2e_s() const { return end_s - scheduled_s; }
  /// (E2E - TTFT) / (n - 1); 0 for a single token.
  double tpot_s() const {
    return output_tokens > 1 ? (end_s - first_s) / static_cast<double>(output_tokens - 1) : 0;
  }
  /// "http 429", "timeout", ...
  std::string error_name() const;
};

}  // namespace gauntlet::load::inline results
