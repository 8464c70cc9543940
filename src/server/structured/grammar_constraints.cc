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
constexpr std::size_t kMaxKeyBytes = std::size_t{256} << 10;
// Of all functions of a request, whether they are compiled for it or kept: a schema may take 50 ms,
// 128 of them may not.
constexpr std::int64_t kMaxRequestSteps = 4 * engine::grammar::Work::kMaxSteps;

/// A refusal without the middle of what it quotes: keywords and references are a client's own
/// texts.
std::string shortened(const std::string& refusal) {
  constexpr std::size_t kFirst = 120;
  constexpr std::size_t kLast = 70;
  if (refusal.size() <= kFirst + kLast) return refusal;
  return refusal.substr(0, kFirst) + "..." + refusal.substr(refusal.size() - kLast);
}

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

ApiResult<CompiledConstraint> GrammarConstraints::compile(
    const OutputConstraint& constraint) const {
  Request request;
  auto form = constraint.frame == OutputFrame::text ? text_form(constraint, request)
                                                    : turn_form(constraint, request);
  if (!form) return form.error();
  if (highest_id(*form) >= vocab_) {
    return ApiError{.message = "the tokenizer has tokens that the model does not have",
                    .param = constraint.param};
  }
  CompiledConstraint compiled{.unenforced = std::move(request.unenforced)};
  if (!form->ways.empty()) {
    compiled.mask = mask_for(std::make_shared<const TurnForm>(std::move(*form)));
  }
  return compiled;
}

ApiResult<TurnForm> GrammarConstraints::text_form(const OutputConstraint& constraint,
                                                  Request& request) const {
  if (end_ids_.empty()) {
    return ApiError{.message = "the model names no token that ends a text",
                    .param = constraint.param};
  }
  const auto masks = answer_masks(constraint, request);
  if (!masks) return masks.error();
  return TurnForm{.ways = {{.body = *masks, .ends = end_ids_}}};
}

ApiResult<TurnForm> GrammarConstraints::turn_form(const OutputConstraint& constraint,
                                                  Request& request) const {
  if (!harmony_) return ApiError{.message = harmony_.error().message, .param = "messages"};
  const model::Harmony::Specials& specials = harmony_->specials();
  TurnForm form;
  const bool is_free = constraint.form == OutputForm::free;
  if (is_free) {
    form.free = &*harmony_;
  } else if (constraint.form != OutputForm::tool_call) {
    const auto masks = answer_masks(constraint, request);
    if (!masks) return masks.error();
    TurnForm::Ids header = {specials.channel};
    append(header, tokenizer_.encode("final"));
    header.push_back(specials.message);
    form.ways.push_back({.header = std::move(header), .body = *masks, .ends = {specials.done}});
  }
  for (const HeldFunction& function : constraint.functions) {
    auto masks = argument_masks(function, request);
    if (masks) {
      form.ways.push_back(call_of(function, std::move(*masks)));
    } else if (is_free && function.strictness == Strictness::lenient) {
      request.unenforced.push_back(fmt::format("the parameters of {}", function.name));
    } else {
      return masks.error();
    }
  }
  check(is_free || !form.ways.empty(), "a required call has functions to choose from");
  if (constraint.max_reasoning_tokens > 0 && !is_free) {
    form.reasoning = reasoning(constraint.max_reasoning_tokens);
  }
  return form;
}

TurnForm::Way GrammarConstraints::call_of(const HeldFunction& function, MasksPtr arguments) const {
  const model::Harmony::Specials& specials = harmony_->specials();
  const std::string recipient = "functions." + function.name;
  TurnForm::Ids header = {specials.channel};
  append(header, tokenizer_.encode(fmt::format("commentary to={} ", recipient)));
  header.push_back(specials.constrain);
  append(header, tokenizer_.encode("json"));
  header.push_back(specials.message);
  return {.header = std::move(header),
          .body = std::move(arguments),
          .ends = {specials.call},
          .recipient = recipient};
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

ApiResult<GrammarConstraints::MasksPtr> GrammarConstraints::answer_masks(
    const OutputConstraint& constraint, Request& request) const {
  const auto text = [&]() -> std::string {
    if (constraint.form == OutputForm::json_object) return "";
    if (constraint.form == OutputForm::choice) return nlohmann::json(constraint.choices).dump();
    return constraint.schema;
  };
  const auto made = compiled(constraint.form, constraint.strictness, text());
  if (!made->masks) return ApiError{.message = made->refusal, .param = constraint.param};
  request.steps += made->steps;
  request.unenforced = made->unenforced;
  return made->masks;
}

ApiResult<GrammarConstraints::MasksPtr> GrammarConstraints::argument_masks(
    const HeldFunction& function, Request& request) const {
  const auto refused = [&](const std::string& why) {
    return ApiError{
        .message = fmt::format("the parameters of the function {}: {}", function.name, why),
        .param = "tools"};
  };
  if (request.steps > kMaxRequestSteps) {
    return ApiError{.message = "the parameters of the functions are too large together",
                    .param = "tools"};
  }
  auto schema = nlohmann::ordered_json::parse(
      function.parameters.empty() ? R"({"properties":{}})" : function.parameters, nullptr, false);
  if (!schema.is_object()) return refused("they are no schema");
  if (!schema.contains("type")) schema["type"] = "object";
  if (schema["type"] != "object") return refused(R"(their "type" must be "object")");
  const auto made = compiled(OutputForm::json_schema, function.strictness, schema.dump());
  request.steps += made->steps;
  if (!made->masks) return refused(made->refusal);
  for (const std::string& one : made->unenforced) {
    request.unenforced.push_back(fmt::format("{} of {}", one, function.name));
  }
  return made->masks;
}

GrammarConstraints::CompiledPtr GrammarConstraints::compiled(OutputForm form, Strictness strictness,
                                                             const std::string& text) const {
  const std::string key = fmt::format("{}{}{}", static_cast<int>(form),
                                      strictness == Strictness::strict ? '!' : '?', text);
  {
    std::unique_lock lock(mutex_);
    no_longer_compiling_.wait(lock, [&] { return !compiling_.contains(key); });
    if (auto found = kept(key)) return found;
    compiling_.insert(key);
    ++num_compiled_;
  }
  CompiledPtr made;
  try {
    made = std::make_shared<const Compiled>(compile_now(form, strictness, text));
  } catch (...) {
    const std::lock_guard lock(mutex_);
    compiling_.erase(key);
    no_longer_compiling_.notify_all();
    throw;
  }
  const std::lock_guard lock(mutex_);
  compiling_.erase(key);
  keep(key, made);
  no_longer_compiling_.notify_all();
  return made;
}

GrammarConstraints::Compiled GrammarConstraints::compile_now(OutputForm form, Strictness strictness,
                                                             const std::string& text) const {
  namespace grammar = engine::grammar;
  Compiled made{.steps = grammar::Work::kMaxSteps};  // of what is refused, at most
  const auto masks_of = [&](Expected<grammar::Grammar> result) {
    if (!result) {
      made.refusal = shortened(result.error().message);
      return;
    }
    made.masks = std::make_shared<const Masks>(
        std::make_shared<const grammar::Grammar>(std::move(*result)), vocabulary());
  };
  if (form == OutputForm::json_object) {
    masks_of(grammar::compile_json_object());
  } else if (form == OutputForm::regex) {
    masks_of(grammar::compile_regex(text));
  } else if (form == OutputForm::choice) {
    masks_of(grammar::compile_choice(nlohmann::json::parse(text)));
  } else {
    auto schema = grammar::compile_schema(text, strictness == Strictness::strict
                                                    ? grammar::Unenforced::refused
                                                    : grammar::Unenforced::noted);
    if (!schema) return {.refusal = shortened(schema.error().message), .steps = made.steps};
    made.steps = schema->steps;
    made.unenforced = std::move(schema->unenforced);
    masks_of(std::move(schema->grammar));
  }
  return made;
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

GrammarConstraints::CompiledPtr GrammarConstraints::kept(const std::string& key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found->second);
  return found->second->compiled;
}

void GrammarConstraints::keep(const std::string& key, const CompiledPtr& compiled) const {
  if (key.size() > kMaxKeyBytes) return;
  kept_.push_front({.key = key, .compiled = compiled});
  by_key_[key] = kept_.begin();
  // What is kept grows with use, so it is weighed anew.
  std::size_t bytes = 0;
  std::size_t fitting = 0;
  for (const Kept& one : kept_) {
    bytes += 2 * one.key.size() + one.compiled->refusal.size();
    if (one.compiled->masks) bytes += one.compiled->masks->bytes();
    if (fitting > 0 && (fitting == kMaxKept || bytes > kMaxKeptBytes)) break;
    ++fitting;
  }
  while (kept_.size() > fitting) {
    by_key_.erase(kept_.back().key);
    kept_.pop_back();
  }
}

std::size_t GrammarConstraints::num_kept() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

std::size_t GrammarConstraints::num_compiled() const {
  const std::lock_guard lock(mutex_);
  return num_compiled_;
}

}  // namespace gauntlet::server::inline structured
