// How an answer is heard: piece by piece, each with the time when it was read.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "load/results/record.h"

namespace gauntlet::load::inline http {

using Clock = std::chrono::steady_clock;

class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void on_head(int status) = 0;
  /// False: enough, this answer is not what it should be.
  virtual bool on_body(std::string_view bytes, Clock::time_point at) = 0;
};

/// How an exchange ended: ok means that an answer of some status came in full.
struct ExchangeEnd {
  Outcome outcome = Outcome::ok;
  std::string words;
};

}  // namespace gauntlet::load::inline http
