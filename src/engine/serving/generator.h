// One request from prompt to finished text, for those who have no others to serve.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/serving/service.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::engine::inline serving {

struct GenerationRequest {
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 256;
  SamplingParams sampling;         // its step is set for each token
  std::vector<std::string> stops;  // the text ends before the first of them
  EndOfSequence end_of_sequence = EndOfSequence::ends;
};

/// What a caller may watch while a request runs.
struct GenerationEvents {
  std::function<void(std::int64_t done, std::int64_t total)> on_prompt;  // after each chunk
  /// Text is what this token freed for showing, maybe nothing; the last call has no token (-1).
  std::function<void(std::int32_t token, std::string_view text)> on_token;
  const std::atomic<bool>* cancel = nullptr;  // looked at between steps
};

struct Generation {
  std::vector<std::int32_t> output;  // the ending token included
  std::string text;                  // the ending token and stop string not included
  FinishReason finish = FinishReason::length;
  std::int64_t reused_tokens = 0;  // of the prompt, kept from the request before
  SpeculationCounts speculation;
  double first_token_ms = 0;
  double prefill_tokens_per_s = 0;
  std::optional<double> decode_tokens_per_s;  // none when no step followed the first token
};

/// Runs one request at a time, over a service of its own. Whole pages of a prompt are kept, so that
/// the next prompt costs little more than what it adds where it goes on from there, as in a chat.
class Generator {
 public:
  /// Both outlive the generator, which has the executor to itself. Without a tokenizer there is no
  /// text, and no stop string.
  Generator(Executor& executor, const model::Tokenizer* tokenizer, Speculation speculation = {});

  Expected<Generation> run(const GenerationRequest& request, const GenerationEvents& events = {});

 private:
  Expected<void> check_request(const GenerationRequest& request) const;

  Executor& executor_;
  const model::Tokenizer* tokenizer_;
  Service service_;
};

}  // namespace gauntlet::engine::inline serving
