#include "server/structured/output_form.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::server::inline structured {
namespace {

using engine::grammar::Mask;

constexpr std::size_t kMaxKnown = 128;  // as many as a request has choices

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

/// The outputs seen so far, each gone on from where it was left: without this, every token would be
/// as dear as all before it.
class KnownOutputs {
 public:
  explicit KnownOutputs(std::shared_ptr<const TurnForm> form) : form_(std::move(form)) {}

  Mask mask_after(std::span<const std::int32_t> output) {
    Known& known = nearest(output);
    for (const std::int32_t token : output.subspan(known.tokens.size())) {
      check(known.cursor.accept(token), "an output broke the form that masked it");
      known.tokens.push_back(token);
    }
    return known.cursor.mask();
  }

 private:
  struct Known {
    std::vector<std::int32_t> tokens;
    TurnCursor cursor;
  };

  /// The longest that the output begins with, or a new one; in front of the others.
  Known& nearest(std::span<const std::int32_t> output) {
    auto best = known_.end();
    for (auto one = known_.begin(); one != known_.end(); ++one) {
      const auto& tokens = one->tokens;
      const bool is_longer = best == known_.end() || tokens.size() > best->tokens.size();
      if (is_longer && tokens.size() <= output.size() &&
          std::equal(tokens.begin(), tokens.end(), output.begin())) {
        best = one;
      }
    }
    if (best == known_.end()) {
      if (known_.size() == kMaxKnown) known_.pop_back();
      known_.push_back({.tokens = {}, .cursor = TurnCursor(form_)});
      best = known_.end() - 1;
    }
    std::rotate(known_.begin(), best, best + 1);
    return known_.front();
  }

  std::shared_ptr<const TurnForm> form_;
  std::vector<Known> known_;  // the last used first
};

}  // namespace

TurnCursor::TurnCursor(std::shared_ptr<const TurnForm> form) : form_(std::move(form)) {
  check(!form_->ways.empty(), "a turn can be written in some way");
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
    case Phase::ended:
      break;
  }
  return has(way_->ends, token);
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
    phase_ = Phase::ended;
    return true;
  }
  return !way_->body->vocabulary().is_end(token) && body_->accept(token);
}

Mask TurnCursor::mask() const {
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
  }
  return mask;
}

TokenMask mask_for(std::shared_ptr<const TurnForm> form) {
  const auto known = std::make_shared<KnownOutputs>(std::move(form));
  return [known](std::span<const std::int32_t> output) { return known->mask_after(output); };
}

}  // namespace gauntlet::server::inline structured
