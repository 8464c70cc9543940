#include "engine/grammar/constraint.h"

#include <algorithm>

namespace gauntlet::engine::grammar {

Constraint::Constraint(std::shared_ptr<const Masks> masks)
    : masks_(std::move(masks)), matcher_(masks_->grammar()) {}

bool Constraint::accept(std::int32_t token) {
  const Vocabulary& vocabulary = masks_->vocabulary();
  if (token < 0 || token >= vocabulary.size()) return false;
  if (vocabulary.is_end(token)) {
    if (!ended_ && !matcher_.can_end()) return false;
    ended_ = true;
  } else {
    const std::string_view bytes = vocabulary.bytes(token);
    if (ended_ || bytes.empty() || !matcher_.advance(bytes)) return false;
  }
  accepted_.push_back(token);
  return true;
}

Mask Constraint::mask() const {
  if (!ended_) return *masks_->allowed(matcher_);
  Mask mask(masks_->vocabulary().mask_words(), 0);
  for (const std::int32_t id : masks_->vocabulary().end_ids())
    mask[static_cast<std::size_t>(id) / 32] |= 1u << (id % 32);
  return mask;
}

void Constraint::restart() {
  matcher_ = Matcher(masks_->grammar());
  accepted_.clear();
  ended_ = false;
}

Mask Constraint::mask_after(std::span<const std::int32_t> output) {
  if (output.size() < accepted_.size() ||
      !std::equal(accepted_.begin(), accepted_.end(), output.begin()))
    restart();
  for (const std::int32_t token : output.subspan(accepted_.size()))
    if (!accept(token)) return Mask(masks_->vocabulary().mask_words(), 0);
  return mask();
}

}  // namespace gauntlet::engine::grammar
