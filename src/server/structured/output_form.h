// What a turn may be, token by token: one of a few headers, whose special tokens are ids and never
// text, then a text by a grammar, then the token that ends it. Or anything, until a message is
// addressed to a function.
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
    Ids ends;                    // any of them ends the turn once the body may end
    std::string recipient = {};  // of a call, as in "functions.get_time"
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
  /// The model may write what it likes; a message to a way's recipient has that way's body and end.
  /// Outlives the form.
  const model::Harmony* free = nullptr;
};

/// Where one output stands in a form.
class TurnCursor {
 public:
  explicit TurnCursor(std::shared_ptr<const TurnForm> form);

  /// False, and nothing changes, for a token that mask() does not allow.
  bool accept(std::int32_t token);
  /// A bit per token id, one of them set at least; nothing where all tokens are allowed.
  engine::grammar::Mask mask() const;

 private:
  enum class Phase { header, reasoning, body, ended, free };
  /// A header that still fits what was written of it.
  struct Candidate {
    TurnForm::Ids ids;
    const TurnForm::Way* way = nullptr;  // none: reasoning
  };

  void begin_headers(const TurnForm::Ids& prefix);
  bool accept_header(std::int32_t token);
  bool accept_reasoning(std::int32_t token);
  bool accept_body(std::int32_t token);
  bool accept_free(std::int32_t token);
  void enter(const TurnForm::Way* way);

  std::shared_ptr<const TurnForm> form_;
  Phase phase_ = Phase::header;
  std::vector<Candidate> candidates_;
  std::size_t header_size_ = 0;  // of the candidates' ids, written
  std::int64_t num_reasoning_ = 0;
  TurnForm::Ids free_header_;  // of a message in a free turn, since the turn or <|start|> began
  bool in_free_header_ = true;
  const TurnForm::Way* way_ = nullptr;
  std::optional<engine::grammar::Constraint> body_;
};

/// A request's mask: each of its choices starts a cursor.
TokenMask mask_for(std::shared_ptr<const TurnForm> form);

}  // namespace gauntlet::server::inline structured
