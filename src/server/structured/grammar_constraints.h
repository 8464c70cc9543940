// Forms of output as masks, by the engine's grammars. What a schema compiles to is kept, for the
// next request with it.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
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
  ApiResult<TokenMask> compile(const OutputConstraint& constraint) const override;

  std::size_t num_kept() const;

 private:
  using MasksPtr = std::shared_ptr<const engine::grammar::Masks>;
  using VocabularyPtr = std::shared_ptr<const engine::grammar::Vocabulary>;
  struct Kept {
    std::string schema;
    MasksPtr masks;
  };

  /// Made at the first request for a form: most servers never see one.
  VocabularyPtr vocabulary() const;
  /// An empty schema: any object.
  Expected<MasksPtr> masks_for(const std::string& schema) const;
  MasksPtr kept(const std::string& schema) const;
  void keep(const std::string& schema, const MasksPtr& masks) const;
  ApiResult<MasksPtr> json_masks(const OutputConstraint& constraint) const;
  ApiResult<MasksPtr> argument_masks(const model::ToolFunction& function) const;
  ApiResult<TurnForm> text_form(const OutputConstraint& constraint) const;
  ApiResult<TurnForm> turn_form(const OutputConstraint& constraint) const;
  TurnForm::Reasoning reasoning(std::int64_t max_tokens) const;

  const model::Tokenizer& tokenizer_;
  const Expected<model::Harmony> harmony_;
  const std::int32_t vocab_;
  TurnForm::Ids end_ids_;  // of the model

  mutable std::mutex mutex_;  // of all below
  mutable VocabularyPtr vocabulary_;
  mutable std::list<Kept> kept_;  // the last used first
  mutable std::unordered_map<std::string, std::list<Kept>::iterator> by_schema_;
};

}  // namespace gauntlet::server::inline structured
