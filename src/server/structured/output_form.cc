#include "server/structured/output_form.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "model/harmony/harmony_parser.h"

namespace gauntlet::server::inline structured {
namespace {

using engine::grammar::Mask;

constexpr std::size_t kMaxFreeHeader = 256;  // tokens; a longer one is addressed to no function

void allow(Mask& mask, std::int32_t id) {
  mask[static_cast<std::size_t>(id) / 32] |= 1u << (id % 32);
}
void forbid(Mask& mask, std::int32_t id) {
  mask[static_cast<std::size_t>(id) / 32] &= ~(1u << (id % 32));
}
bool has(const Mask& mask, std::int32_t id) {
  return id >= 0 && static_cast<std::size_t>(id) / 32 < mask.size() &&
         (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
}
bool has(const TurnForm::Ids& ids, std::int32_t id) {
  return std::ranges::find(ids, id) != ids.end();
}

/// One output's place in a form, as the service asks for it.
class TurnMask final : public engine::MaskCursor {
 public:
  explicit TurnMask(TurnCursor cursor) : cursor_(std::move(cursor)) {}

  Mask mask() override { return cursor_.mask(); }
  void accept(std::int32_t token) override {
    check(cursor_.accept(token), "an output broke the form that masked it");
  }
  std::unique_ptr<engine::MaskCursor> fork() const override {
    return std::make_unique<TurnMask>(*this);
  }

 private:
  TurnCursor cursor_;
};

}  // namespace

TurnCursor::TurnCursor(std::shared_ptr<const TurnForm> form) : form_(std::move(form)) {
  check(!form_->ways.empty(), "a turn can be written in some way");
  if (form_->free != nullptr) {
    phase_ = Phase::free;
    return;
  }
  begin_headers({});
  if (form_->reasoning) candidates_.push_back({.ids = form_->reasoning->header});
}

void TurnCursor::begin_headers(const TurnForm::Ids& prefix) {
  phase_ = Phase::header;
  header_size_ = 0;
  candidates_.clear();
  for (const TurnForm::Way& way : form_->ways) {
    Candidate& one = candidates_.emplace_back(Candidate{.ids = prefix, .way = &way});
    one.ids.insert(one.ids.end(), way.header.begin(), way.header.end());
    if (one.ids.empty()) return enter(&way);
  }
}

void TurnCursor::enter(const TurnForm::Way* way) {
  candidates_.clear();
  way_ = way;
  phase_ = way ? Phase::body : Phase::reasoning;
  if (way) body_.emplace(way->body);
}

bool TurnCursor::accept(std::int32_t token) {
  switch (phase_) {
    case Phase::header:
      return accept_header(token);
    case Phase::reasoning:
      return accept_reasoning(token);
    case Phase::body:
      return accept_body(token);
    case Phase::free:
      return accept_free(token);
    case Phase::ended:
      break;
  }
  return has(way_->ends, token);
}

bool TurnCursor::accept_free(std::int32_t token) {
  const model::Harmony::Specials& specials = form_->free->specials();
  if (token == specials.start) {
    free_header_.assign(1, token);
    in_free_header_ = true;
  } else if (in_free_header_ && free_header_.size() < kMaxFreeHeader) {
    free_header_.push_back(token);
  }
  if (token != specials.message || !in_free_header_) return true;
  in_free_header_ = false;
  // Read by who reads it afterwards, too, so that no spelling of a header is missed.
  const bool is_first = free_header_.front() != specials.start;
  model::HarmonyParser parser(*form_->free,
                              is_first ? std::optional(model::Role::assistant) : std::nullopt);
  for (const std::int32_t id : free_header_) parser.push(id);
  if (parser.messages().empty()) return true;
  const std::string& recipient = parser.messages().back().header.recipient;
  const auto way = std::ranges::find(form_->ways, recipient, &TurnForm::Way::recipient);
  if (way != form_->ways.end()) enter(&*way);
  return true;
}

bool TurnCursor::accept_header(std::int32_t token) {
  const auto fits = [&](const Candidate& one) { return one.ids[header_size_] == token; };
  if (std::ranges::none_of(candidates_, fits)) return false;
  std::erase_if(candidates_, [&](const Candidate& one) { return !fits(one); });
  ++header_size_;
  const Candidate& first = candidates_.front();
  if (first.ids.size() == header_size_) enter(first.way);
  return true;
}

bool TurnCursor::accept_reasoning(std::int32_t token) {
  const TurnForm::Reasoning& reasoning = *form_->reasoning;
  if (token == reasoning.end) {
    begin_headers(reasoning.resume);
    return true;
  }
  if (num_reasoning_ == reasoning.max_tokens || !has(*reasoning.text, token)) return false;
  ++num_reasoning_;
  return true;
}

bool TurnCursor::accept_body(std::int32_t token) {
  if (has(way_->ends, token)) {
    if (!body_->can_end()) return false;
    phase_ = form_->free != nullptr ? Phase::free : Phase::ended;
    return true;
  }
  return !way_->body->vocabulary().is_end(token) && body_->accept(token);
}

Mask TurnCursor::mask() const {
  if (phase_ == Phase::free) return {};
  const engine::grammar::Vocabulary& vocabulary = form_->ways.front().body->vocabulary();
  Mask mask(vocabulary.mask_words(), 0);
  switch (phase_) {
    case Phase::header:
      for (const Candidate& one : candidates_) allow(mask, one.ids[header_size_]);
      break;
    case Phase::reasoning:
      if (num_reasoning_ < form_->reasoning->max_tokens) mask = *form_->reasoning->text;
      allow(mask, form_->reasoning->end);
      break;
    case Phase::body:
      mask = body_->mask();
      for (const std::int32_t id : vocabulary.end_ids()) forbid(mask, id);
      if (body_->can_end()) {
        for (const std::int32_t id : way_->ends) allow(mask, id);
      }
      break;
    case Phase::ended:
      for (const std::int32_t id : way_->ends) allow(mask, id);
      break;
    case Phase::free:
      break;
  }
  return mask;
}

TokenMask mask_for(std::shared_ptr<const TurnForm> form) {
  return TokenMask(std::make_shared<const TurnMask>(TurnCursor(std::move(form))));
}

}  // namespace gauntlet::server::inline structured
