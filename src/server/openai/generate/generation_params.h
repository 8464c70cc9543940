// What a completion and a chat may both ask for: how tokens are drawn, how many, and what ends
// them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/serving/service_request.h"
#include "server/openai/fields.h"

namespace gauntlet::server::inline openai {

enum class Delivery { whole, streamed };
enum class StreamUsage { omitted, included };
enum class TokenIds { omitted, shown };
enum class ServiceTier { unsaid, said };

struct GenerationParams {
  engine::SamplingParams sampling{.temperature = 1};
  std::optional<std::uint64_t> seed;  // none: one of chance
  engine::Adjustments adjustments;
  int num_choices = 1;
  std::optional<std::int64_t> max_tokens;
  std::int64_t min_tokens = 0;  // before which no token ends the output
  std::vector<std::string> stops;
  std::vector<std::int32_t> stop_ids;
  engine::EndOfSequence end_of_sequence = engine::EndOfSequence::ends;
  std::optional<int> top_log_probs;     // none: no log-probabilities at all
  std::optional<int> prompt_log_probs;  // alternatives of each token; none: those are not computed
  TokenIds token_ids = TokenIds::omitted;
  ServiceTier service_tier = ServiceTier::unsaid;
  Delivery delivery = Delivery::whole;
  StreamUsage stream_usage = StreamUsage::omitted;
};

/// All but max_tokens and log-probabilities, which the two endpoints spell differently.
GenerationParams read_generation_params(Fields& fields, std::int64_t vocab);

inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 31;
inline constexpr IntegerRange kMaxTokensRange{1, kMaxTokens};
inline constexpr int kMaxTopLogProbs = 20;

/// vLLM's return_token_ids and prompt_logprobs, which responses do not have.
void read_token_extras(Fields& fields, GenerationParams& params);

/// Token ids out of a list; a fault names the element.
std::vector<std::int32_t> read_token_ids(Fields& fields, const std::string& name, const Json& list,
                                         std::int64_t vocab);

/// Fields of OpenAI's that change nothing here, checked for type all the same. Whoever names a
/// tier is told which it got.
void read_bystanders(Fields& fields, GenerationParams& params);

}  // namespace gauntlet::server::inline openai
