// One choice's tokens as what a client is shown of them: text, or the parts of an assistant's
// message. Stop strings are found here, on the engine's thread, so that they end the choice at
// once.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/serving/service_request.h"
#include "engine/serving/text_stream.h"
#include "model/harmony/harmony.h"

namespace gauntlet::server::inline openai {

struct ShownLogProb {
  std::string bytes;
  std::optional<float> log_probability;  // none: of a prompt's first token
  std::vector<std::pair<std::string, float>> top;
};

/// A token of the prompt, and what could have stood in its place.
struct ShownPromptToken {
  std::int32_t token = -1;
  ShownLogProb shown;
  std::vector<std::int32_t> top_tokens;  // of shown.top
};

struct ToolCallDelta {
  int index = 0;
  std::string id;    // with the first of a call
  std::string name;  // likewise
  std::string arguments;
};

/// What one token added, in this order. Every token of the content has its log-probability in the
/// delta in which its text begins.
struct Delta {
  std::string content;
  std::string reasoning;
  std::vector<ToolCallDelta> tool_calls;
  std::vector<ShownLogProb> log_probs;
  std::vector<ShownPromptToken> prompt;  // before any token
  std::vector<std::int32_t> token_ids;   // where asked for: what was sampled, shown or not

  bool empty() const { return content.empty() && is_content(); }
  /// There is nothing but content.
  bool is_content() const {
    return reasoning.empty() && tool_calls.empty() && log_probs.empty() && prompt.empty() &&
           token_ids.empty();
  }
};

class ChoiceDecoder {
 public:
  virtual ~ChoiceDecoder() = default;
  virtual Delta push(const engine::TokenEvent& event) = 0;
  /// The prompt's next tokens, before any of the choice's own, where they have log-probabilities.
  virtual Delta push_prompt(std::span<const engine::PromptToken> tokens) = 0;
  /// Nothing follows.
  virtual Delta finish() = 0;
  /// A stop string came up.
  virtual bool stopped() const = 0;
  /// Of this choice, so far.
  virtual int num_tool_calls() const = 0;
  /// Likewise.
  virtual std::int64_t num_reasoning_tokens() const = 0;
};

enum class LogProbs { omitted, shown };
enum class SpecialText { hidden, shown };
/// What is shown of a prompt that is scored.
enum class ShownPrompt {
  text,    // its text and log-probabilities, as if it had been said
  tokens,  // each with its alternatives, by ids
};
/// What becomes of a header that the output ends in. One that is not enforced may be all that a
/// model without harmony had to say.
enum class CutHeader { shown, dropped };

struct DecoderOptions {
  std::vector<std::string> stops;
  std::vector<std::int32_t> stop_ids;  // end the text, and are not part of it
  LogProbs log_probs = LogProbs::omitted;
  std::uint64_t call_seed = 0;  // makes the ids of tool calls
  CutHeader cut_header = CutHeader::shown;
  SpecialText special_tokens = SpecialText::hidden;  // of a text
  std::string echo;                   // stands before a text, and is not searched for stop strings
  std::optional<ShownPrompt> prompt;  // none: no log-probabilities of it
  std::size_t hidden_prompt = 0;      // tokens that a prompt's text has not: those put before it
};

/// The tokenizer outlives the decoder.
std::unique_ptr<ChoiceDecoder> make_text_decoder(const model::Tokenizer& tokenizer,
                                                 DecoderOptions options);
/// Reasoning, calls and content by harmony's channels; stop strings are looked for in the content.
/// Harmony outlives the decoder.
std::unique_ptr<ChoiceDecoder> make_chat_decoder(const model::Harmony& harmony,
                                                 DecoderOptions options);

}  // namespace gauntlet::server::inline openai
