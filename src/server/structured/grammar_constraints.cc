#include "server/structured/grammar_constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/grammar/schema.h"

namespace gauntlet::server::inline structured {
namespace {

using engine::grammar::Mask;
using engine::grammar::Masks;
using engine::grammar::Vocabulary;

constexpr std::size_t kMaxKept = 256;  // more than the functions of one request
constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;
// Of all functions of a request: a schema may take half a second to compile, 128 of them may not.
constexpr std::size_t kMaxFunctionNodes = 200'000;

constexpr const char* kFormat = "response_format";

void append(TurnForm::Ids& to, const TurnForm::Ids& ids) {
  to.insert(to.end(), ids.begin(), ids.end());
}

std::int32_t highest_id(const TurnForm& form) {
  std::int32_t highest = 0;
  const auto look = [&](const TurnForm::Ids& ids) {
    for (const std::int32_t id : ids) highest = std::max(highest, id);
  };
  for (const TurnForm::Way& way : form.ways) {
    look(way.header);
    look(way.ends);
  }
  if (form.reasoning) {
    look(form.reasoning->header);
    look(form.reasoning->resume);
    look({form.reasoning->end});
  }
  return highest;
}

}  // namespace

GrammarConstraints::GrammarConstraints(const model::Tokenizer& tokenizer,
                                       const model::ModelConfig& config)
    : tokenizer_(tokenizer),
      harmony_(model::Harmony::make(tokenizer)),
      vocab_(static_cast<std::int32_t>(config.vocab)) {
  for (const std::int64_t id : config.eos_ids) {
    if (id < config.vocab) end_ids_.push_back(static_cast<std::int32_t>(id));
  }
}

ApiResult<TokenMask> GrammarConstraints::compile(const OutputConstraint& constraint) const {
  auto form = constraint.frame == OutputFrame::text ? text_form(constraint) : turn_form(constraint);
  if (!form) return form.error();
  if (highest_id(*form) >= vocab_) {
    return ApiError{.message = "the tokenizer has tokens that the model does not have",
                    .param = kFormat};
  }
  return mask_for(std::make_shared<const TurnForm>(std::move(*form)));
}

ApiResult<TurnForm> GrammarConstraints::text_form(const OutputConstraint& constraint) const {
  if (end_ids_.empty()) {
    return ApiError{.message = "the model names no token that ends a text", .param = kFormat};
  }
  const auto masks = json_masks(constraint);
  if (!masks) return masks.error();
  return TurnForm{.ways = {{.body = *masks, .ends = end_ids_}}};
}

ApiResult<TurnForm> GrammarConstraints::turn_form(const OutputConstraint& constraint) const {
  if (!harmony_) return ApiError{.message = harmony_.error().message, .param = "messages"};
  const model::Harmony::Specials& specials = harmony_->specials();
  TurnForm form;
  if (constraint.form != OutputForm::tool_call) {
    const auto masks = json_masks(constraint);
    if (!masks) return masks.error();
    TurnForm::Ids header = {specials.channel};
    append(header, tokenizer_.encode("final"));
    header.push_back(specials.message);
    form.ways.push_back({.header = std::move(header), .body = *masks, .ends = {specials.done}});
  }
  std::size_t num_nodes = 0;
  for (const model::ToolFunction& function : constraint.functions) {
    const auto masks = argument_masks(function);
    if (!masks) return masks.error();
    num_nodes += (*masks)->grammar().num_nodes();
    if (num_nodes > kMaxFunctionNodes) {
      return ApiError{.message = "the parameters of the functions are too large together",
                      .param = "tools"};
    }
    TurnForm::Ids header = {specials.channel};
    append(header, tokenizer_.encode(fmt::format("commentary to=functions.{} ", function.name)));
    header.push_back(specials.constrain);
    append(header, tokenizer_.encode("json"));
    header.push_back(specials.message);
    form.ways.push_back({.header = std::move(header), .body = *masks, .ends = {specials.call}});
  }
  check(!form.ways.empty(), "a required call has functions to choose from");
  if (constraint.max_reasoning_tokens > 0) {
    form.reasoning = reasoning(constraint.max_reasoning_tokens);
  }
  return form;
}

TurnForm::Reasoning GrammarConstraints::reasoning(std::int64_t max_tokens) const {
  const model::Harmony::Specials& specials = harmony_->specials();
  const auto tokens = vocabulary();
  Mask text(tokens->mask_words(), 0);
  for (std::int32_t id = 0; id < vocab_; ++id) {
    if (!tokens->bytes(id).empty()) text[id / 32] |= 1u << (id % 32);
  }
  TurnForm::Reasoning reasoning{.header = {specials.channel},
                                .text = std::make_shared<const Mask>(std::move(text)),
                                .max_tokens = max_tokens,
                                .end = specials.end,
                                .resume = {specials.start}};
  append(reasoning.header, tokenizer_.encode("analysis"));
  reasoning.header.push_back(specials.message);
  append(reasoning.resume, tokenizer_.encode("assistant"));
  return reasoning;
}

ApiResult<GrammarConstraints::MasksPtr> GrammarConstraints::json_masks(
    const OutputConstraint& constraint) const {
  const auto masks = masks_for(constraint.form == OutputForm::json_object ? "" : constraint.schema);
  if (!masks) return ApiError{.message = masks.error().message, .param = kFormat};
  return *masks;
}

ApiResult<GrammarConstraints::MasksPtr> GrammarConstraints::argument_masks(
    const model::ToolFunction& function) const {
  const auto refused = [&](const std::string& why) {
    return ApiError{
        .message = fmt::format("the parameters of the function {}: {}", function.name, why),
        .param = "tools"};
  };
  auto schema = nlohmann::ordered_json::parse(
      function.parameters.empty() ? R"({"properties":{}})" : function.parameters, nullptr, false);
  if (!schema.is_object()) return refused("they are no schema");
  if (!schema.contains("type")) schema["type"] = "object";
  if (schema["type"] != "object") return refused(R"(their "type" must be "object")");
  const auto masks = masks_for(schema.dump());
  if (!masks) return refused(masks.error().message);
  return *masks;
}

Expected<GrammarConstraints::MasksPtr> GrammarConstraints::masks_for(
    const std::string& schema) const {
  if (auto masks = kept(schema)) return masks;
  auto grammar = schema.empty() ? engine::grammar::compile_json_object()
                                : engine::grammar::compile_schema(schema);
  if (!grammar) return grammar.error();
  const auto masks = std::make_shared<const Masks>(
      std::make_shared<const engine::grammar::Grammar>(std::move(*grammar)), vocabulary());
  keep(schema, masks);
  return masks;
}

GrammarConstraints::VocabularyPtr GrammarConstraints::vocabulary() const {
  const std::lock_guard lock(mutex_);
  if (!vocabulary_) {
    vocabulary_ = std::make_shared<const Vocabulary>(
        vocab_,
        [this](std::int32_t id) {
          return tokenizer_.is_special(id) ? std::string_view() : tokenizer_.token_bytes(id);
        },
        end_ids_);
  }
  return vocabulary_;
}

GrammarConstraints::MasksPtr GrammarConstraints::kept(const std::string& schema) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_schema_.find(schema);
  if (found == by_schema_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found->second);
  return found->second->masks;
}

void GrammarConstraints::keep(const std::string& schema, const MasksPtr& masks) const {
  const std::lock_guard lock(mutex_);
  if (by_schema_.contains(schema)) return;
  kept_.push_front({.schema = schema, .masks = masks});
  by_schema_[schema] = kept_.begin();
  // What is kept grows with use, so it is weighed anew.
  std::size_t bytes = 0;
  std::size_t fitting = 0;
  for (const Kept& one : kept_) {
    bytes += one.masks->bytes();
    if (fitting > 0 && (fitting == kMaxKept || bytes > kMaxKeptBytes)) break;
    ++fitting;
  }
  while (kept_.size() > fitting) {
    by_schema_.erase(kept_.back().schema);
    kept_.pop_back();
  }
}

std::size_t GrammarConstraints::num_kept() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace gauntlet::server::inline structured
