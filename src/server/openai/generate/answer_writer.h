// What a client of completions and chats reads: choices and their deltas as OpenAI's objects, whole
// or as a stream of server-sent events.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/openai/generate/choice_decoder.h"
#include "server/openai/generate/generation_params.h"
#include "server/openai/generate/log_probs_text.h"

namespace gauntlet::server::inline openai {

enum class AnswerKind { completion, chat };

struct AnswerHead {
  AnswerKind kind = AnswerKind::completion;
  std::string id;  // "chatcmpl-..."
  std::string model;
  std::int64_t created_s = 0;
  LogProbs log_probs = LogProbs::omitted;
  StreamUsage stream_usage = StreamUsage::omitted;
  LogProbs prompt_log_probs = LogProbs::omitted;  // as vLLM lists them
  TokenIds token_ids = TokenIds::omitted;
  std::vector<std::vector<std::int32_t>> prompts;  // their ids, where those are shown
  ServiceTier service_tier = ServiceTier::unsaid;
  int choices_per_prompt = 1;
};

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of those
  std::int64_t completion_tokens = 0;
  std::int64_t reasoning_tokens = 0;  // of those
  std::int64_t accepted_guesses = 0;  // of those
  std::int64_t rejected_guesses = 0;
};

/// OpenAI's word for it; what ends without an answer has none.
std::string finish_word(engine::FinishReason reason, int num_tool_calls);

/// Where deltas become bytes: of one object once all is there, or of a stream's events in order.
/// Each function returns what goes out at once. Called by one thread at a time.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  /// Once per token, so it appends to what goes out.
  virtual void delta(int choice, const Delta& delta, std::string& out) = 0;
  virtual std::string finish(int choice, const std::string& finish_word) = 0;
  /// All choices have ended.
  virtual std::string done(const Usage& usage) = 0;
  /// The same, where the answer is large without copying it.
  virtual TextBlocks done_in_blocks(const Usage& usage) {
    TextBlocks blocks;
    blocks.append(done(usage));
    return blocks;
  }
  /// About how many bytes an end has to write that no delta did.
  virtual std::size_t unwritten_bytes() const { return 0; }
  /// The last of a stream that had begun; nothing else follows.
  virtual std::string failed(const ApiError& error) = 0;
};

std::unique_ptr<AnswerWriter> make_answer_writer(AnswerHead head, Delivery delivery,
                                                 int num_choices);

/// [{"token", "logprob", "bytes", "top_logprobs"}], as chats and responses have them.
Json chat_log_probs(const std::vector<ShownLogProb>& log_probs);

}  // namespace gauntlet::server::inline openai
