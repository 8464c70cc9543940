#include "lab/author/stored.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/check.h"

namespace gauntlet::lab::inline author {
namespace {

void require(const Expected<void>& done) {
  if (!done) fail(done.error().message);
}

constexpr std::int64_t kRequestBytes = std::int64_t{1} << 20;

/// Mean of what was seen since it was last asked.
struct Seen {
  double sum = 0;
  int times = 0;
};

}  // namespace

Side reading_cold(const std::shared_ptr<StoredWords>& stored, Side side) {
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

Side reading_hot(const std::shared_ptr<StoredWords>& stored, Side side) {
  side.enter = [stored] { require(stored->file().load()); };
  return side;
}

Side reading_by_all(const std::shared_ptr<StoredWords>& stored, const StoredParts& parts,
                    ThreadPool& pool) {
  const int file = stored->file().direct();
  return reading_cold(
      stored, Side([parts, &pool, file] {
        const std::int64_t per_part = (parts.bytes + kRequestBytes - 1) / kRequestBytes;
        std::atomic<bool> all_read = true;  // what a worker throws would end the process
        pool.for_ranges(parts.count * per_part, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t part = i / per_part, at = i % per_part * kRequestBytes;
            const auto count = static_cast<std::size_t>(std::min(kRequestBytes, parts.bytes - at));
            if (!read_fully(file, {parts.out + part * parts.bytes + at, count},
                            parts.start[part] * kDirectBytes + at)) {
              all_read = false;
            }
          }
        });
        check(all_read, "a part can be read");
      }));
}

void expect_parts(Reference& reference, const std::string& name, const StoredWords& stored,
                  std::span<const std::int32_t> start) {
  const auto out = reference.exact<unsigned char>(name);
  const std::span<std::uint64_t> all{reinterpret_cast<std::uint64_t*>(out.data()), out.size() / 8};
  const std::size_t words = all.size() / start.size();
  for (std::size_t part = 0; part < start.size(); ++part) {
    stored.recompute(all.subspan(part * words, words), start[part]);
  }
}

}  // namespace gauntlet::lab::inline author
