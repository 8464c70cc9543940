// One request from prompt to finished text: the prompt in chunks, then a token at a time until
// something ends it.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/executor.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::engine {

enum class EndOfSequence { ends, ignored };

struct GenerationRequest {
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 256;
  SamplingParams sampling;         // its step is set for each token
  std::vector<std::string> stops;  // the text ends before the first of them
  EndOfSequence end_of_sequence = EndOfSequence::ends;
};

enum class FinishReason {
  eos,        // the model ended the sequence
  stop,       // a stop string came up
  length,     // max_tokens, or the model's last position
  cancelled,  // the caller's wish
  expired,    // it waited too long for its turn
  failed,     // what only this request met: no token to choose, a fault in its own callback
};
std::string_view name_of(FinishReason reason);

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
  double first_token_ms = 0;
  double prefill_tokens_per_s = 0;
  std::optional<double> decode_tokens_per_s;  // none when no step followed the first token
};

/// Runs one request at a time. The pages of a prompt are kept, so that the next prompt costs only
/// what it adds where it goes on from there, as in a chat.
class Generator {
 public:
  /// Both outlive the generator. Without a tokenizer there is no text, and no stop string.
  Generator(Executor& executor, const model::Tokenizer* tokenizer);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  Expected<Generation> run(const GenerationRequest& request, const GenerationEvents& events = {});

 private:
  Expected<void> check_request(const GenerationRequest& request) const;
  /// A sequence that holds the prompt's beginning, if only none of it.
  SequenceId resume(const std::vector<std::int32_t>& prompt);
  void keep(SequenceId sequence, const std::vector<std::int32_t>& prompt);
  void forget();
  /// The first token after the prompt; none when cancelled.
  Expected<std::optional<std::int32_t>> prefill(SequenceId sequence,
                                                const GenerationRequest& request,
                                                const GenerationEvents& events);
  Expected<std::int32_t> step(BatchItem item);
  bool ends(std::int32_t token, const GenerationRequest& request) const;

  Executor& executor_;
  const model::Tokenizer* tokenizer_;
  std::optional<SequenceId> kept_;
  std::vector<std::int32_t> kept_prompt_;
};

}  // namespace gauntlet::engine
