// Turns an answer's bytes into the times and counts of a record. Runs for every token.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "load/http/answer.h"
#include "load/http/sse.h"

namespace gauntlet::load::inline http {

class StreamSink final : public AnswerSink {
 public:
  using Hook = std::function<void(std::string_view data, Clock::time_point at)>;

  /// `start` is the run's, where the record's times begin; `hook` may be empty.
  StreamSink(RequestRecord& record, Clock::time_point start, const Hook& hook);
  StreamSink(const StreamSink&) = delete;
  StreamSink& operator=(const StreamSink&) = delete;

  void on_head(int status) override;
  bool on_body(std::string_view bytes, Clock::time_point at) override;
  /// Judges the record by how the exchange ended.
  void finish(const ExchangeEnd& end);

 private:
  void on_event(std::string_view data);
  void take_token(double at_s);

  RequestRecord& record_;
  Clock::time_point start_;
  const Hook& hook_;
  SseParser parser_;
  Clock::time_point at_;
  double last_token_s_ = 0;
  bool is_done_ = false;
  std::string error_body_;
};

}  // namespace gauntlet::load::inline http
