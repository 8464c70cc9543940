#include "load/workload/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace gauntlet::load::inline workload {
namespace {

constexpr std::uint64_t kPrefixStream = 0x9EF1;

constexpr std::array<std::string_view, 128> kWords = {
    "the",   "of",     "and",     "to",     "in",   "that",   "is",     "was",     "he",
    "for",   "it",     "with",    "as",     "his",  "on",     "be",     "at",      "by",
    "had",   "not",    "are",     "but",    "from", "or",     "have",   "an",      "they",
    "which", "one",    "you",     "were",   "her",  "all",    "she",    "there",   "would",
    "their", "we",     "him",     "been",   "has",  "when",   "who",    "will",    "more",
    "no",    "if",     "out",     "so",     "said", "what",   "up",     "its",     "about",
    "into",  "than",   "them",    "can",    "only", "other",  "new",    "some",    "could",
    "time",  "these",  "two",     "may",    "then", "do",     "first",  "any",     "my",
    "now",   "such",   "like",    "our",    "over", "man",    "me",     "even",    "most",
    "made",  "after",  "also",    "did",    "many", "before", "must",   "through", "back",
    "years", "where",  "much",    "your",   "way",  "well",   "down",   "should",  "because",
    "each",  "just",   "those",   "people", "how",  "too",    "little", "state",   "good",
    "very",  "make",   "world",   "still",  "own",  "see",    "men",    "work",    "long",
    "get",   "here",   "between", "both",   "life", "being",  "under",  "never",   "day",
    "same",  "another"};

void append_words(std::string& out, std::int64_t count, Variates variates) {
  for (std::int64_t i = 0; i < count; ++i) {
    out += ' ';
    out += kWords[static_cast<std::size_t>(variates.integer(0, std::ssize(kWords) - 1))];
  }
}

void append_ids(std::string& out, const PromptSource& source, std::int64_t count,
                Variates variates) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (out.back() != '[') out += ',';
    const std::int64_t drawn =
        source.ids.empty()
            ? variates.integer(0, source.vocab - 1)
            : source.ids[static_cast<std::size_t>(variates.integer(0, std::ssize(source.ids) - 1))];
    const fmt::format_int text(drawn);
    out.append(text.data(), text.size());
  }
}

/// A request's prefix comes from its group, the rest from itself.
Variates prefix_variates(const PlannedRequest& request, std::uint64_t seed) {
  return Variates(seed, mix64(static_cast<std::uint64_t>(request.group)) ^ kPrefixStream);
}

std::string word_prompt(const WordCost& cost, const PlannedRequest& request, std::uint64_t seed) {
  const auto words_for = [&](std::int64_t tokens, double intercept) {
    const double count = (static_cast<double>(tokens) - intercept) / cost.per_word;
    return std::max<std::int64_t>(0, std::llround(count));
  };
  const std::int64_t shared = words_for(request.prefix_tokens, 0);
  std::string text;
  append_words(text, shared, prefix_variates(request, seed));
  const std::int64_t all =
      std::max<std::int64_t>(1, words_for(request.prompt_tokens, cost.intercept));
  append_words(text, all - std::min(all, shared), Variates(request.seed, 0));
  return text;
}

}  // namespace

std::string words(std::int64_t count, std::uint64_t seed) {
  std::string text;
  append_words(text, count, Variates(seed, 0));
  return text;
}

std::string request_body(const RequestForm& form, const PromptSource& source,
                         const PlannedRequest& request, std::uint64_t seed) {
  using nlohmann::json;
  const auto quoted = [](const std::string& text) {
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  };
  const bool by_ids = request.prompt.empty() && (!source.ids.empty() || source.vocab > 0);
  check(form.endpoint == Endpoint::completions || !by_ids, "a chat is made of words");
  std::string body = R"({"model":)" + quoted(form.model);
  if (by_ids) {
    body.reserve(body.size() + static_cast<std::size_t>(request.prompt_tokens) * 7 + 160);
    body += R"(,"prompt":[)";
    append_ids(body, source, request.prefix_tokens, prefix_variates(request, seed));
    append_ids(body, source, request.prompt_tokens - request.prefix_tokens,
               Variates(request.seed, 0));
    body += ']';
  } else {
    const std::string text =
        request.prompt.empty() ? word_prompt(source.words, request, seed) : request.prompt;
    body += form.endpoint == Endpoint::chat
                ? R"(,"messages":[{"role":"user","content":)" + quoted(text) + "}]"
                : R"(,"prompt":)" + quoted(text);
  }
  body += fmt::format(R"(,"max_tokens":{},"stream":true,"stream_options":{{"include_usage":true}})",
                      request.output_tokens);
  if (form.ignore_eos) body += R"(,"ignore_eos":true)";
  if (form.temperature) body += fmt::format(R"(,"temperature":{})", *form.temperature);
  return body + "}";
}

}  // namespace gauntlet::load::inline workload
