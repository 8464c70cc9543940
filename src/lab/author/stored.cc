#include "lab/author/stored.h"

#include <utility>

#include "core/check.h"

namespace gauntlet::lab::inline author {
namespace {

void require(const Expected<void>& done) {
  if (!done) fail(done.error().message);
}

/// Mean of what was seen since it was last asked.
struct Seen {
  double sum = 0;
  int times = 0;
};

}  // namespace

Side reading_cold(std::shared_ptr<StoredWords> stored, Side side) {
  side.enter = [stored] { require(stored->file().evict()); };
  const auto seen = std::make_shared<Seen>();
  side.leave = [stored, seen] {
    const auto held = stored->file().cached_bytes();
    if (!held) fail(held.error().message);
    seen->sum += static_cast<double>(*held);
    ++seen->times;
  };
  side.outcomes = [seen, others = std::move(side.outcomes)] {
    auto all = others ? others() : std::map<std::string, double>{};
    const Seen since = std::exchange(*seen, {});
    if (since.times > 0) all["page_cache_bytes"] = since.sum / since.times;
    return all;
  };
  return side;
}

Side reading_hot(std::shared_ptr<StoredWords> stored, Side side) {
  side.enter = [stored] { require(stored->file().load()); };
  return side;
}

}  // namespace gauntlet::lab::inline author
