// One choice's tokens as what a client is shown of them: text, or the parts of an assistant's
// message. Stop strings are found here, on the engine's thread, so that they end the choice at
// once.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/service_request.h"
#include "engine/text_stream.h"
#include "model/harmony.h"

namespace gauntlet::server::inline openai {

struct ShownLogProb {
  std::string bytes;
  float log_probability = 0;
  std::vector<std::pair<std::string, float>> top;
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

  bool empty() const {
    return content.empty() && reasoning.empty() && tool_calls.empty() && log_probs.empty();
  }
};

class ChoiceDecoder {
 public:
  virtual ~ChoiceDecoder() = default;
  virtual Delta push(const engine::TokenEvent& event) = 0;
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
  std::string echo;  // stands before a text, and is not searched for stop strings
};

/// The tokenizer outlives the decoder.
std::unique_ptr<ChoiceDecoder> make_text_decoder(const model::Tokenizer& tokenizer,
                                                 DecoderOptions options);
/// Reasoning, calls and content by harmony's channels; stop strings are looked for in the content.
/// Harmony outlives the decoder.
std::unique_ptr<ChoiceDecoder> make_chat_decoder(const model::Harmony& harmony,
                                                 DecoderOptions options);

}  // namespace gauntlet::server::inline openai
