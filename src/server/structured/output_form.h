// What a turn may be, token by token: one of a few headers, whose special tokens are ids and never
// text, then JSON by a grammar, then the token that ends it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/grammar/constraint.h"
#include "server/structured/constraint.h"

namespace gauntlet::server::inline structured {

struct TurnForm {
  using Ids = std::vector<std::int32_t>;

  /// One way to write the turn. Headers are different and none begins with another.
  struct Way {
    Ids header;  // through <|message|>; empty: the text begins at once
    std::shared_ptr<const engine::grammar::Masks> body;
    Ids ends;  // any of them ends the turn once the body may end
  };
  /// Free text that may come before it.
  struct Reasoning {
    Ids header;
    std::shared_ptr<const engine::grammar::Mask> text;  // the tokens it is made of
    std::int64_t max_tokens = 0;                        // then it must end
    std::int32_t end = 0;
    Ids resume;  // stands between its end and the header of the rest
  };

  std::vector<Way> ways;  // at least one
  std::optional<Reasoning> reasoning;
};

/// Where one output stands in a form.
class TurnCursor {
 public:
  explicit TurnCursor(std::shared_ptr<const TurnForm> form);

  /// False, and nothing changes, for a token that mask() does not allow.
  bool accept(std::int32_t token);
  /// A bit per token id; never empty of bits.
  engine::grammar::Mask mask() const;

 private:
  enum class Phase { header, reasoning, body, ended };
  /// A header that still fits what was written of it.
  struct Candidate {
    TurnForm::Ids ids;
    const TurnForm::Way* way = nullptr;  // none: reasoning
  };

  void begin_headers(const TurnForm::Ids& prefix);
  bool accept_header(std::int32_t token);
  bool accept_reasoning(std::int32_t token);
  bool accept_body(std::int32_t token);
  void enter(const TurnForm::Way* way);

  std::shared_ptr<const TurnForm> form_;
  Phase phase_ = Phase::header;
  std::vector<Candidate> candidates_;
  std::size_t header_size_ = 0;  // of the candidates' ids, written
  std::int64_t num_reasoning_ = 0;
  const TurnForm::Way* way_ = nullptr;
  std::optional<engine::grammar::Constraint> body_;
};

/// A request's mask over all its choices: their outputs are told apart by what they hold. Called by
/// one thread at a time.
TokenMask mask_for(std::shared_ptr<const TurnForm> form);

}  // namespace gauntlet::server::inline structured
