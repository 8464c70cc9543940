// Log-probabilities as JSON, written token by token while they come: built at the end of a whole
// answer, as one tree, they would take many times their size and a time in which nobody is served.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "server/openai/generate/choice_decoder.h"
#include "server/openai/generate/text_blocks.h"

namespace gauntlet::server::inline openai {

enum class LogProbsForm {
  completion,  // {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, each a list
  chat,        // {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal"}
};

class LogProbsText {
 public:
  /// `offset`: characters shown before the first token.
  explicit LogProbsText(LogProbsForm form, std::int64_t offset = 0)
      : form_(form), offset_(offset) {}

  void add(const std::vector<ShownLogProb>& log_probs);
  std::int64_t offset() const { return offset_; }
  /// The object so far. Nothing is left here.
  TextBlocks take_json();

 private:
  void add_to_completion(const ShownLogProb& shown);
  void add_to_chat(const ShownLogProb& shown);

  LogProbsForm form_;
  std::int64_t offset_;
  TextBlocks tokens_;  // elements of each list; of a chat's content, all is here
  TextBlocks values_;
  TextBlocks tops_;
  TextBlocks offsets_;
};

/// vLLM's list for a prompt: null for the first token, then {"ID": {"logprob", "rank",
/// "decoded_token"}} with the token itself and its alternatives. A rank beyond those is null.
class PromptLogProbsText {
 public:
  void add(const std::vector<ShownPromptToken>& tokens);
  /// The list so far. Nothing is left here.
  TextBlocks take_json();

 private:
  TextBlocks list_;
};

}  // namespace gauntlet::server::inline openai
