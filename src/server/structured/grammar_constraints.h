// Forms of output as masks, by the engine's grammars. What a schema compiles to is kept, for the
// next request with it, and so is why it was refused.
#pragma once
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/grammar/masks.h"
#include "model/config.h"
#include "server/structured/constraint.h"
#include "server/structured/output_form.h"

namespace gauntlet::server::inline structured {

class GrammarConstraints final : public ConstraintCompiler {
 public:
  /// The tokenizer outlives this.
  GrammarConstraints(const model::Tokenizer& tokenizer, const model::ModelConfig& config);

  /// A turn is `<|channel|>final<|message|>` with JSON and `<|return|>`, or a call:
  /// `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>` with arguments and
  /// `<|call|>`. Where reasoning is allowed, it may begin with a message in the analysis channel.
  /// Two requests that come with the same schema at once compile it once.
  ApiResult<CompiledConstraint> compile(const OutputConstraint& constraint) const override;

  std::size_t num_kept() const;
  /// How many schemas were compiled, refused ones included.
  std::size_t num_compiled() const;

 private:
  using MasksPtr = std::shared_ptr<const engine::grammar::Masks>;
  using VocabularyPtr = std::shared_ptr<const engine::grammar::Vocabulary>;
  /// What became of a form's text.
  struct Compiled {
    MasksPtr masks;       // none: refused
    std::string refusal;  // why
    std::vector<std::string> unenforced;
    std::int64_t steps = 0;
  };
  using CompiledPtr = std::shared_ptr<const Compiled>;
  struct Kept {
    std::string key;
    CompiledPtr compiled;
  };
  /// What a request may compile in all, and what it learns.
  struct Request {
    std::int64_t steps = 0;
    std::vector<std::string> unenforced;
  };

  /// Made at the first request for a form: most servers never see one.
  VocabularyPtr vocabulary() const;
  /// Kept, or made now, or waited for where another thread makes it.
  CompiledPtr compiled(OutputForm form, Strictness strictness, const std::string& text) const;
  Compiled compile_now(OutputForm form, Strictness strictness, const std::string& text) const;
  CompiledPtr kept(const std::string& key) const;
  void keep(const std::string& key, const CompiledPtr& compiled) const;
  ApiResult<MasksPtr> answer_masks(const OutputConstraint& constraint, Request& request) const;
  ApiResult<MasksPtr> argument_masks(const HeldFunction& function, Request& request) const;
  ApiResult<TurnForm> text_form(const OutputConstraint& constraint, Request& request) const;
  ApiResult<TurnForm> turn_form(const OutputConstraint& constraint, Request& request) const;
  TurnForm::Way call_of(const HeldFunction& function, MasksPtr arguments) const;
  TurnForm::Reasoning reasoning(std::int64_t max_tokens) const;

  const model::Tokenizer& tokenizer_;
  const Expected<model::Harmony> harmony_;
  const std::int32_t vocab_;
  TurnForm::Ids end_ids_;  // of the model

  mutable std::mutex mutex_;  // of all below
  mutable VocabularyPtr vocabulary_;
  mutable std::list<Kept> kept_;  // the last used first
  mutable std::unordered_map<std::string, std::list<Kept>::iterator> by_key_;
  mutable std::unordered_set<std::string> compiling_;  // keys
  mutable std::condition_variable no_longer_compiling_;
  mutable std::size_t num_compiled_ = 0;
};

}  // namespace gauntlet::server::inline structured
