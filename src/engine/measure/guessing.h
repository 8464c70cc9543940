// What guessing does to the speed of decoding: the same streams through a service without it and
// through one with it, turn by turn, over one executor.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/measure/oracle.h"
#include "engine/serving/service.h"

namespace gauntlet::engine::inline measure {

/// Why a measurement of guesses came to nothing.
constexpr const char* kOtherTokens =
    "with guesses other tokens were said than without; on a GPU more rows in a step change the "
    "last bits of logits, unless --deterministic is given";

/// Who guesses; an oracle is told what was said without before it is asked.
struct Guessers {
  Speculation speculation;
  std::shared_ptr<OracleDrafter> oracle = nullptr;  // null: all are real
};

struct DecodeTest {
  std::int64_t streams = 1;
  std::int64_t prompt_tokens = 1;
  std::int64_t output_tokens = 128;  // of which the first comes of the prompt, and is not timed

  std::int64_t timed_tokens() const { return streams * (output_tokens - 1); }
};

/// One repetition.
struct GuessSample {
  double plain_s = 0;  // from the last stream's first token to the last one's end
  double guessed_s = 0;
  SpeculationCounts guessed;  // of all streams
};

class GuessMeter {
 public:
  GuessMeter(Executor& executor, Guessers guessers, std::int64_t max_streams);

  /// Greedy answers to random prompts, other ones each time, without and with guesses. An error
  /// where they differ.
  Expected<GuessSample> measure(const DecodeTest& test);

 private:
  using Text = OracleDrafter::Text;
  struct Wave {
    double seconds = 0;
    std::vector<Text> texts;
    SpeculationCounts guessed;
  };
  std::vector<Text> random_prompts(const DecodeTest& test);
  static Expected<Wave> run(Service& service, const std::vector<Text>& prompts,
                            std::int64_t output_tokens);

  const Guessers guessers_;
  const std::int64_t vocab_;
  Service plain_;
  Service guessing_;
  std::uint64_t num_drawn_ = 0;
};

}  // namespace gauntlet::engine::inline measure
