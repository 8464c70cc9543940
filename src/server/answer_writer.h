// What a client reads: choices and their deltas as OpenAI's objects, whole or as a stream of
// server-sent events.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "server/choice_decoder.h"
#include "server/generation_params.h"

namespace gauntlet::server {

enum class AnswerKind { completion, chat };

struct AnswerHead {
  AnswerKind kind = AnswerKind::completion;
  std::string id;  // "chatcmpl-..."
  std::string model;
  std::int64_t created_s = 0;
  LogProbs log_probs = LogProbs::omitted;
  StreamUsage stream_usage = StreamUsage::omitted;
};

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of those
  std::int64_t completion_tokens = 0;
};

/// OpenAI's word for it; what ends without an answer has none.
std::string finish_word(engine::FinishReason reason, int num_tool_calls);

/// Events of one stream, in order.
class StreamWriter {
 public:
  StreamWriter(AnswerHead head, int num_choices);
  /// Empty for a delta that says nothing. A chat's choice begins with its role.
  std::string delta(int choice, const Delta& delta);
  std::string finish(int choice, const std::string& finish_word);
  /// Usage where asked for, and the end of the stream.
  std::string done(const Usage& usage) const;

 private:
  std::string event(const std::string& choices, const std::string& usage) const;

  const AnswerHead head_;
  const std::string opening_;  // of each event
  std::vector<bool> begun_;
  std::vector<std::int64_t> offsets_;  // characters shown so far, by choice
};

/// One object, once all choices are there.
class WholeWriter {
 public:
  WholeWriter(AnswerHead head, int num_choices);
  void delta(int choice, const Delta& delta);
  void finish(int choice, const std::string& finish_word);
  std::string done(const Usage& usage) const;

 private:
  struct Choice {
    Delta all;  // with one tool call per index
    std::string finish_word;
  };
  const AnswerHead head_;
  std::vector<Choice> choices_;
};

}  // namespace gauntlet::server
