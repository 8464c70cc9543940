// What must be known of a server before it is loaded: its model's name, and how long a prompt is.
#pragma once
#include <string>

#include "core/expected.h"
#include "load/http/client.h"

namespace gauntlet::load::inline workload {

enum class PromptKind { automatic, ids, words };

struct PrepareOptions {
  std::string model;  // empty: the first that the server lists
  Endpoint endpoint = Endpoint::completions;
  PromptKind prompts = PromptKind::automatic;
  std::int64_t vocab = 0;  // ids below it are known to be valid; 0: ask the server's tokenizer
};

struct Prepared {
  std::string model;
  PromptSource prompts;
  std::string prompt_words;  // how prompts are made, for the report
};

/// Asks /v1/models; then, for ids, /tokenize, whose answer to common words gives ids that the model
/// knows as text. Without it, or for a chat, measures two prompts of words by the server's own
/// usage counts.
Expected<Prepared> prepare(Client& client, const PrepareOptions& options);

}  // namespace gauntlet::load::inline workload
