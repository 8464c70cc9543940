#include "server/openai/generate/generation_params.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace gauntlet::server::inline openai {
namespace {

constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr std::size_t kMaxBiases = 1024;
constexpr std::int64_t kMaxChoices = 128;
constexpr NumberRange kPenalty{-2, 2};

template <class T>
void set(T& target, const std::optional<double>& value) {
  if (value) target = static_cast<T>(*value);
}

void read_sampling(Fields& fields, engine::SamplingParams& sampling) {
  set(sampling.temperature, fields.number("temperature", {0, 2}));
  const auto top_p = fields.number("top_p", {0, 1});
  set(sampling.top_p, top_p);
  if (top_p && sampling.top_p <= 0) fields.refuse("top_p", "must be above 0 and at most 1");
  set(sampling.min_p, fields.number("min_p", {0, 1}));
  // vLLM's clients say -1 where no limit is meant.
  const auto top_k = fields.integer("top_k", {-1, std::numeric_limits<int>::max()});
  if (top_k && *top_k > 0) sampling.top_k = static_cast<int>(*top_k);
}

void read_adjustments(Fields& fields, std::int64_t vocab, engine::Adjustments& adjustments) {
  set(adjustments.presence_penalty, fields.number("presence_penalty", kPenalty));
  set(adjustments.frequency_penalty, fields.number("frequency_penalty", kPenalty));
  set(adjustments.repetition_penalty, fields.number("repetition_penalty", {0.01, 10}));
  const Json* bias = fields.object("logit_bias");
  if (!bias) return;
  if (bias->size() > kMaxBiases) {
    return fields.refuse("logit_bias", fmt::format("has more than {} tokens", kMaxBiases));
  }
  for (const auto& [key, value] : bias->items()) {
    std::int32_t token = 0;
    const char* const end = key.data() + key.size();
    const auto [at, failed] = std::from_chars(key.data(), end, token);
    if (failed != std::errc() || at != end || token < 0 || token >= vocab) {
      return fields.refuse("logit_bias",
                           fmt::format("must name tokens by ids from 0 to {}", vocab - 1));
    }
    const double amount = value.is_number() ? value.get<double>() : 1e9;
    if (!(amount >= -100 && amount <= 100)) {
      return fields.refuse("logit_bias", "must give each token a number between -100 and 100");
    }
    adjustments.bias.emplace_back(token, static_cast<float>(amount));
  }
}

std::vector<std::string> read_stops(Fields& fields) {
  const Json* value = fields.find("stop");
  if (!value) return {};
  const Json list = value->is_array() ? *value : Json::array({*value});
  std::vector<std::string> stops;
  for (const Json& stop : list) {
    const bool fits = stop.is_string() && !stop.get_ref<const std::string&>().empty() &&
                      stop.get_ref<const std::string&>().size() <= kMaxStopBytes;
    if (!fits || stops.size() == kMaxStops) {
      fields.refuse("stop", fmt::format("must be a string or a list of at most {} strings, each of "
                                        "1 to {} bytes",
                                        kMaxStops, kMaxStopBytes));
      return {};
    }
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

void read_stream(Fields& fields, GenerationParams& params) {
  if (fields.boolean("stream").value_or(false)) params.delivery = Delivery::streamed;
  const Json* options = fields.object("stream_options");
  if (!options) return;
  if (params.delivery != Delivery::streamed) {
    return fields.refuse("stream_options", "is for requests with stream set to true");
  }
  Fields inner = fields.within(*options, "stream_options");
  if (inner.boolean("include_usage").value_or(false)) params.stream_usage = StreamUsage::included;
  inner.boolean("include_obfuscation");
  inner.refuse_unknown();
}

}  // namespace

std::vector<std::int32_t> read_token_ids(Fields& fields, const std::string& name, const Json& list,
                                         std::int64_t vocab) {
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (const Json& value : list) {
    const auto id = integer_within(value, {0, vocab - 1});
    if (!id) {
      fields.refuse(name, fmt::format("must hold token ids from 0 to {}; element {} is not one",
                                      vocab - 1, ids.size()));
      return {};
    }
    ids.push_back(static_cast<std::int32_t>(*id));
  }
  return ids;
}

GenerationParams read_generation_params(Fields& fields, std::int64_t vocab) {
  GenerationParams params;
  read_sampling(fields, params.sampling);
  read_adjustments(fields, vocab, params.adjustments);
  params.num_choices = static_cast<int>(fields.integer("n", {1, kMaxChoices}).value_or(1));
  constexpr IntegerRange kAny{std::numeric_limits<std::int64_t>::min(),
                              std::numeric_limits<std::int64_t>::max()};
  if (const auto seed = fields.integer("seed", kAny))
    params.seed = static_cast<std::uint64_t>(*seed);
  params.stops = read_stops(fields);
  if (const Json* ids = fields.list("stop_token_ids", kMaxStops)) {
    params.stop_ids = read_token_ids(fields, "stop_token_ids", *ids, vocab);
  }
  if (fields.boolean("ignore_eos").value_or(false)) {
    params.end_of_sequence = engine::EndOfSequence::ignored;
  }
  params.min_tokens = fields.integer("min_tokens", {0, kMaxTokens}).value_or(0);
  read_stream(fields, params);
  return params;
}

void read_token_extras(Fields& fields, GenerationParams& params) {
  if (fields.boolean("return_token_ids").value_or(false)) params.token_ids = TokenIds::shown;
  const auto prompt = fields.integer("prompt_logprobs", {0, kMaxTopLogProbs});
  if (!prompt) return;
  if (params.delivery == Delivery::streamed) {
    return fields.refuse("prompt_logprobs", "cannot be streamed: ask for a whole answer");
  }
  params.prompt_log_probs = static_cast<int>(*prompt);
}

void read_bystanders(Fields& fields, GenerationParams& params) {
  fields.text("user");
  fields.text("safety_identifier");
  fields.text("prompt_cache_key");
  fields.object("metadata");
  fields.text("prompt_cache_retention");
  fields.object("prompt_cache_options");
  if (fields.choice("service_tier", {"auto", "default", "flex", "scale", "priority"})) {
    params.service_tier = ServiceTier::said;
  }
  fields.choice("verbosity", {"low", "medium", "high"});
  fields.boolean("store");
}

}  // namespace gauntlet::server::inline openai
