// What a request asks of the service, and what it is told in return.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling/adjustments.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/token_mask.h"
#include "engine/serving/fair_shares.h"
#include "engine/speculation/counts.h"

namespace gauntlet::engine::inline serving {

enum class EndOfSequence { ends, ignored };

enum class FinishReason {
  eos,        // the model ended the sequence
  stop,       // a stop string came up
  length,     // max_tokens, or the model's last position
  cancelled,  // the caller's wish
  expired,    // it waited too long for its turn
  failed,     // what only this request met: no token to choose, a fault in its own callback
};
std::string_view name_of(FinishReason reason);

struct ServiceRequest {
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 256;  // 0: the prompt is computed, and nothing is made
  SamplingParams sampling;        // its step is set for each token
  Adjustments adjustments;
  std::vector<std::int32_t> stop_ids;
  EndOfSequence end_of_sequence = EndOfSequence::ends;
  int num_choices = 1;  // the first draws with the seed, each other with one made of it
  std::optional<int> top_log_probs;  // none: no log-probabilities at all
  /// Alternatives beside the log-probability of each token of the prompt; none: those are not
  /// wanted. A prompt that is scored takes nothing from the prefix cache, and one with alternatives
  /// is computed a token at a time, for logits come after the last token of a step alone.
  std::optional<int> prompt_log_probs;
  int priority = 0;
  Caller caller = {};  // its call: that of another request, or 0 for one of its own
  TokenMask allowed;   // what may follow what a choice has made so far
};

struct RequestLimits {
  std::int64_t vocab = 0;
  std::int64_t positions = 0;  // of prompt and output together
  std::int64_t choices = 0;
};

/// Holds an error, a wrong use, that names the first thing no service within these limits can do.
Expected<void> validate(const ServiceRequest& request, const RequestLimits& limits);

struct PromptToken {
  std::int32_t token = -1;
  std::optional<float> log_probability;  // none: of the first, which nothing comes before
  std::vector<TokenLogProb> top;         // as many as asked for
};

struct PromptEvent {
  int choice = 0;
  std::vector<PromptToken> tokens;  // all of them
};

struct TokenEvent {
  int choice = 0;
  std::int32_t token = -1;
  float log_probability = 0;      // before temperature and adjustments; where asked for
  std::vector<TokenLogProb> top;  // as many as asked for
};

struct FinishEvent {
  int choice = 0;
  FinishReason reason = FinishReason::length;
  std::string error;  // one sentence where it expired or failed
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;  // of those, from the prefix cache
  std::int64_t output_tokens = 0;
  SpeculationCounts speculation;
  double queue_s = 0;    // until its first step
  double prefill_s = 0;  // from there to its first token
  double decode_s = 0;   // from there to its end
};

enum class Verdict { go_on, stop };

/// Called by the engine thread, so they are quick. A stop string is the caller's to find: its
/// verdict ends the choice with FinishReason::stop.
struct RequestEvents {
  /// Once per choice, before its first token, where log-probabilities of the prompt are asked for.
  std::function<void(PromptEvent)> on_prompt;
  std::function<void(std::int64_t done)>
      on_prefill;  // tokens of the prompt, after each step, by any choice
  std::function<Verdict(const TokenEvent&)> on_token;
  std::function<void(const FinishEvent&)> on_finish;  // once per choice, its last event
};

}  // namespace gauntlet::engine::inline serving
