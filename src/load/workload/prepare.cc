#include "load/workload/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "load/http/event.h"

namespace gauntlet::load::inline workload {
namespace {

constexpr std::int64_t kSampleWords = 2048;
constexpr std::size_t kFewestIds = 16;

Expected<std::string> first_model(Client& client) {
  const auto answer = client.ask("/v1/models", std::nullopt);
  if (!answer) return answer.error();
  if (answer->status == 401 || answer->status == 403) {
    return Error{
        fmt::format("the server refuses this API key ({}): give --api-key or "
                    "GAUNTLET_API_KEY",
                    answer->status)};
  }
  const nlohmann::json body = nlohmann::json::parse(answer->body, nullptr, false);
  if (answer->status == 200 && body.is_object() && body.contains("data") &&
      body["data"].is_array() && !body["data"].empty()) {
    const nlohmann::json& first = body["data"].front();
    if (first.is_object() && first.contains("id") && first["id"].is_string()) {
      return first["id"].get<std::string>();
    }
  }
  return Error{
      fmt::format("the server lists no model at /v1/models (HTTP {}): name one with "
                  "--model",
                  answer->status)};
}

/// Empty where the server has no tokenizer to ask.
Expected<std::vector<std::int32_t>> known_ids(Client& client, const std::string& model) {
  const nlohmann::json request = {
      {"model", model}, {"prompt", words(kSampleWords, 1)}, {"add_special_tokens", false}};
  const auto answer = client.ask("/tokenize", request.dump());
  if (!answer) return answer.error();
  std::vector<std::int32_t> ids;
  const nlohmann::json body = nlohmann::json::parse(answer->body, nullptr, false);
  if (answer->status != 200 || !body.is_object() || !body.contains("tokens")) return ids;
  for (const nlohmann::json& id : body["tokens"]) {
    if (id.is_number_integer()) ids.push_back(id.get<std::int32_t>());
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.size() < kFewestIds) ids.clear();
  return ids;
}

Expected<std::int64_t> tokens_of(Client& client, const RequestForm& form, std::int64_t num_words) {
  nlohmann::json request = {{"model", form.model}, {"max_tokens", 1}};
  const bool is_chat = form.endpoint == Endpoint::chat;
  const std::string text = words(num_words, 2);
  if (is_chat) {
    request["messages"] = nlohmann::json::array({{{"role", "user"}, {"content", text}}});
  } else {
    request["prompt"] = text;
  }
  const std::string path = is_chat ? "/v1/chat/completions" : "/v1/completions";
  const auto answer = client.ask(path, request.dump());
  if (!answer) return answer.error();
  if (answer->status != 200) {
    return Error{fmt::format("the server answers a prompt of {} words with HTTP {}: {}", num_words,
                             answer->status, error_words(answer->body))};
  }
  const auto usage = usage_of(answer->body);
  if (!usage || usage->prompt_tokens < 1) {
    return Error{
        "the server does not say how many tokens a prompt has, so none of a given length "
        "can be made: give --vocab"};
  }
  return usage->prompt_tokens;
}

Expected<WordCost> measure_words(Client& client, const RequestForm& form) {
  constexpr std::int64_t kFew = 16, kMany = 80;
  const auto few = tokens_of(client, form, kFew);
  if (!few) return few.error();
  const auto many = tokens_of(client, form, kMany);
  if (!many) return many.error();
  const double per_word = static_cast<double>(*many - *few) / static_cast<double>(kMany - kFew);
  if (!(per_word > 0)) {
    return Error{"the server counts no more tokens for more words: give --vocab"};
  }
  return WordCost{.intercept = static_cast<double>(*few) - per_word * static_cast<double>(kFew),
                  .per_word = per_word};
}

}  // namespace

Expected<Prepared> prepare(Client& client, const PrepareOptions& options) {
  Prepared prepared{.model = options.model};
  if (prepared.model.empty()) {
    const auto model = first_model(client);
    if (!model) return model.error();
    prepared.model = *model;
  }
  const bool may_use_ids =
      options.endpoint == Endpoint::completions && options.prompts != PromptKind::words;
  if (may_use_ids && options.vocab > 0) {
    prepared.prompts.vocab = options.vocab;
    prepared.prompt_words = fmt::format("token ids below {}", options.vocab);
    return prepared;
  }
  if (may_use_ids) {
    auto ids = known_ids(client, prepared.model);
    if (!ids) return ids.error();
    if (!ids->empty()) {
      prepared.prompt_words = fmt::format("{} token ids of common words", ids->size());
      prepared.prompts.ids = std::move(*ids);
      return prepared;
    }
  }
  if (options.prompts == PromptKind::ids) {
    return Error{options.endpoint == Endpoint::chat
                     ? "a chat takes no token ids: --prompts ids is for completions"
                     : "the server has no /tokenize to learn token ids from: give --vocab",
                 ErrorKind::wrong_use};
  }
  const auto cost = measure_words(
      client, {.endpoint = options.endpoint, .model = prepared.model, .ignore_eos = false});
  if (!cost) return cost.error();
  prepared.prompts.words = *cost;
  prepared.prompt_words = fmt::format("words, {:.2f} tokens each and {:.0f} around them",
                                      cost->per_word, cost->intercept);
  return prepared;
}

}  // namespace gauntlet::load::inline workload
