#include "engine/kv/kv_pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.h"

namespace gauntlet::engine::inline kv {

KvPoolConfig paged_pool(const KvPoolNeeds& needs) {
  const auto pages = [&](std::int64_t positions) {
    return pages_for(positions, needs.page_tokens);
  };
  // A window touches one page more than it fills, and one is written.
  const std::int64_t per_window = pages(needs.window) + 2;
  return {.page_tokens = needs.page_tokens,
          .window = needs.window,
          .full_pages = pages(needs.positions) + needs.sequences,
          .sliding_pages = needs.sequences * per_window + pages(needs.step_tokens)};
}

KvPool::KvPool(const KvPoolConfig& config) : config_(config) {
  check(config.page_tokens > 0 && config.window > 0, "a KV pool needs pages and a window");
  const std::int64_t counts[] = {config.full_pages, config.sliding_pages};
  for (int g = 0; g < kNumKvGroups; ++g) {
    check(counts[g] % unit_pages() == 0, "a contiguous KV pool has whole runs");
    groups_[g].references.assign(static_cast<std::size_t>(counts[g]), 0);
    groups_[g].held = groups_[g].references;
    groups_[g].in_use.assign(static_cast<std::size_t>(counts[g] / unit_pages()), 0);
    // The lowest pages are handed out first, so that a small load touches little memory.
    for (std::int64_t page = counts[g]; page > 0;) {
      groups_[g].free.push_back(static_cast<std::int32_t>(page -= unit_pages()));
    }
  }
}

const KvPool::Sequence& KvPool::at(SequenceId sequence) const {
  const auto found = sequences_.find(sequence);
  check(found != sequences_.end(), "no such sequence in the KV pool");
  return found->second;
}

std::int32_t KvPool::take(Group& group) {
  check(!group.free.empty(), "a page was taken without being counted first");
  const std::int32_t page = group.free.back();
  group.free.pop_back();
  const std::int64_t unit = unit_pages();
  std::fill_n(group.references.begin() + page, unit, 1);
  group.in_use[page / unit] = static_cast<std::int32_t>(unit);
  return page;
}

void KvPool::give(Group& group, std::int32_t page) {
  if (--group.references[page] > 0) return;
  const std::int64_t unit = page / unit_pages();
  if (--group.in_use[unit] > 0) return;
  group.free.push_back(static_cast<std::int32_t>(unit * unit_pages()));
}

SequenceId KvPool::create() {
  sequences_[next_] = {};
  return next_++;
}

SequenceId KvPool::fork(SequenceId parent) {
  Sequence copy = at(parent);
  copy.ahead = 0;
  // Pages reserved but not written yet belong to the parent alone.
  const std::int64_t used = (copy.length + config_.page_tokens - 1) / config_.page_tokens;
  for (int g = 0; g < kNumKvGroups; ++g) {
    if (std::ssize(copy.tables[g]) > used) copy.tables[g].resize(used);
    for (const std::int32_t page : copy.tables[g]) {
      if (page != kNoPage) ++groups_[g].references[page];
    }
    copy.has_run[g] = false;
  }
  sequences_[next_] = std::move(copy);
  return next_++;
}

void KvPool::free(SequenceId sequence) {
  const Sequence& gone = at(sequence);
  for (int g = 0; g < kNumKvGroups; ++g) {
    for (const std::int32_t page : gone.tables[g]) {
      if (page != kNoPage) give(groups_[g], page);
    }
  }
  sequences_.erase(sequence);
}

SequenceId KvPool::adopt(std::span<const std::int32_t> full,
                         std::span<const std::int32_t> sliding) {
  check(full.size() == sliding.size(), "an adopted prefix has as many pages in each group");
  Sequence sequence{.length = std::ssize(full) * config_.page_tokens};
  const std::span<const std::int32_t> tables[] = {full, sliding};
  for (int g = 0; g < kNumKvGroups; ++g) {
    for (const std::int32_t page : tables[g]) {
      check(page == kNoPage || groups_[g].references[page] > 0, "an adopted page is not in use");
      if (page != kNoPage) ++groups_[g].references[page];
    }
    sequence.tables[g].assign(tables[g].begin(), tables[g].end());
  }
  sequences_[next_] = std::move(sequence);
  return next_++;
}

void KvPool::replace(SequenceId id, KvGroup kind, std::int64_t index, std::int32_t page) {
  check(!config_.is_contiguous(), "a page of a contiguous sequence cannot be replaced");
  check((index + 1) * config_.page_tokens <= at(id).length, "only a whole page can be replaced");
  Group& group = groups_[static_cast<int>(kind)];
  std::int32_t& own = sequences_[id].tables[static_cast<int>(kind)][index];
  check(own != kNoPage && group.references[page] > 0, "a page is replaced by one in use");
  ++group.references[page];
  give(group, own);
  own = page;
}

void KvPool::hold(KvGroup kind, std::int32_t page) {
  Group& group = groups_[static_cast<int>(kind)];
  check(group.references[page] > 0, "a page that is held is in use");
  ++group.references[page];
  ++group.held[page];
}

void KvPool::release(KvGroup kind, std::int32_t page) {
  Group& group = groups_[static_cast<int>(kind)];
  check(group.held[page] > 0, "a page was released that nobody holds");
  --group.held[page];
  give(group, page);
}

std::int32_t KvPool::references(KvGroup group, std::int32_t page) const {
  return groups_[static_cast<int>(group)].references[page];
}

std::int64_t KvPool::pages_needed(SequenceId sequence, KvGroup group, std::int64_t count) const {
  return pages_needed(at(sequence), group, count);
}

/// New pages for the next `count` positions, and one more where the page being written is shared.
std::int64_t KvPool::pages_needed(const Sequence& sequence, KvGroup group,
                                  std::int64_t count) const {
  const auto& table = sequence.tables[static_cast<int>(group)];
  const std::int64_t begin = sequence.length + sequence.ahead;
  const std::int64_t end = begin + count;
  if (config_.is_contiguous()) {
    const std::int64_t more_than_there_are = groups_[static_cast<int>(group)].references.size() + 1;
    if (end > config_.longest()) return more_than_there_are;
    return count == 0 || sequence.has_run[static_cast<int>(group)] ? 0 : config_.run_pages;
  }
  const std::int64_t pages = (end + config_.page_tokens - 1) / config_.page_tokens;
  std::int64_t needed = std::max<std::int64_t>(0, pages - std::ssize(table));
  const std::int64_t open = begin / config_.page_tokens;
  if (count > 0 && open < std::ssize(table) && table[open] != kNoPage &&
      groups_[static_cast<int>(group)].references[table[open]] > 1) {
    ++needed;
  }
  return needed;
}

/// A run of its own in place of the pages that a fork shares.
void KvPool::take_run(Sequence& sequence, KvGroup kind) {
  Group& group = groups_[static_cast<int>(kind)];
  std::vector<std::int32_t> run(static_cast<std::size_t>(config_.run_pages));
  std::iota(run.begin(), run.end(), take(group));
  auto& table = sequence.tables[static_cast<int>(kind)];
  for (std::size_t i = 0; i < table.size(); ++i) {
    copies_.push_back({kind, table[i], run[i]});
    give(group, table[i]);
  }
  table = std::move(run);
  sequence.has_run[static_cast<int>(kind)] = true;
}

void KvPool::grow(Sequence& sequence, KvGroup kind, std::int64_t count) {
  if (config_.is_contiguous()) {
    if (count > 0 && !sequence.has_run[static_cast<int>(kind)]) take_run(sequence, kind);
    return;
  }
  Group& group = groups_[static_cast<int>(kind)];
  auto& table = sequence.tables[static_cast<int>(kind)];
  const std::int64_t begin = sequence.length + sequence.ahead;
  const std::int64_t open = begin / config_.page_tokens;
  if (count > 0 && open < std::ssize(table) && table[open] != kNoPage &&
      group.references[table[open]] > 1) {
    const std::int32_t own = take(group);
    copies_.push_back({kind, table[open], own});
    give(group, table[open]);
    table[open] = own;
  }
  const std::int64_t pages = (begin + count + config_.page_tokens - 1) / config_.page_tokens;
  while (std::ssize(table) < pages) table.push_back(take(group));
}

bool KvPool::reserve(SequenceId id, std::int64_t count) {
  const Sequence& sequence = at(id);
  for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
    if (pages_needed(sequence, group, count) > free_pages(group)) return false;
  }
  for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) grow(sequences_[id], group, count);
  return true;
}

void KvPool::advance(SequenceId id, std::int64_t count) {
  at(id);
  Sequence& sequence = sequences_[id];
  sequence.ahead += count;
  for (const auto& table : sequence.tables) {
    check(sequence.length + sequence.ahead <= std::ssize(table) * config_.page_tokens,
          "a step's positions were not reserved");
  }
}

void KvPool::retract(SequenceId id, std::int64_t count) {
  check(at(id).ahead >= count, "more positions were retracted than are under way");
  sequences_[id].ahead -= count;
}

void KvPool::trim(SequenceId id) {
  at(id);
  if (config_.is_contiguous()) return;
  Sequence& sequence = sequences_[id];
  const std::int64_t used =
      (sequence.length + sequence.ahead + config_.page_tokens - 1) / config_.page_tokens;
  for (int g = 0; g < kNumKvGroups; ++g) {
    for (; std::ssize(sequence.tables[g]) > used; sequence.tables[g].pop_back()) {
      give(groups_[g], sequence.tables[g].back());
    }
  }
}

void KvPool::bring_together(SequenceId id, std::span<const std::int64_t> places) {
  const Sequence& sequence = at(id);
  check(sequence.ahead == 0, "positions are moved while a step writes behind them");
  const auto page_tokens = config_.page_tokens;
  const std::int64_t reserved = std::ssize(sequence.tables[0]) * page_tokens;
  std::int64_t last = sequence.length - 1;
  for (const std::int64_t from : places) {
    check(from > last && from < reserved, "places on a path ascend, and were reserved");
    last = from;
  }
  std::int64_t to = sequence.length;
  for (const std::int64_t from : places) {
    for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
      const auto& table = sequence.tables[static_cast<int>(group)];
      if (from == to) continue;
      moves_.push_back({.group = group,
                        .from_page = table[from / page_tokens],
                        .from_slot = static_cast<std::int32_t>(from % page_tokens),
                        .to_page = table[to / page_tokens],
                        .to_slot = static_cast<std::int32_t>(to % page_tokens)});
    }
    ++to;
  }
}

std::int64_t KvPool::next_position(SequenceId sequence) const {
  return at(sequence).length + at(sequence).ahead;
}

void KvPool::commit(SequenceId id, std::int64_t count) {
  at(id);
  Sequence& sequence = sequences_[id];
  sequence.length += count;
  auto& table = sequence.tables[static_cast<int>(KvGroup::sliding)];
  check(sequence.length <= std::ssize(table) * config_.page_tokens,
        "more positions were committed than reserved");
  if (config_.is_contiguous()) return;
  // The next query sits at `length` and sees window - 1 positions before it.
  const std::int64_t first_seen = std::max<std::int64_t>(0, sequence.length - config_.window + 1);
  for (std::int64_t page = first_seen / config_.page_tokens;
       page-- > 0 && table[page] != kNoPage;) {
    give(groups_[static_cast<int>(KvGroup::sliding)], table[page]);
    table[page] = kNoPage;
  }
}

std::int64_t KvPool::length(SequenceId sequence) const { return at(sequence).length; }

std::span<const std::int32_t> KvPool::table(SequenceId sequence, KvGroup group) const {
  return at(sequence).tables[static_cast<int>(group)];
}

std::int64_t KvPool::free_pages(KvGroup group) const {
  return std::ssize(groups_[static_cast<int>(group)].free) * unit_pages();
}

std::vector<PageCopy> KvPool::take_copies() { return std::exchange(copies_, {}); }

void KvPool::return_copies(std::vector<PageCopy> copies) {
  copies.insert(copies.end(), copies_.begin(), copies_.end());
  copies_ = std::move(copies);
}

std::vector<RowMove> KvPool::take_moves() { return std::exchange(moves_, {}); }

void KvPool::return_moves(std::vector<RowMove> moves) {
  moves.insert(moves.end(), moves_.begin(), moves_.end());
  moves_ = std::move(moves);
}

std::string KvPool::check_integrity() const {
  for (int g = 0; g < kNumKvGroups; ++g) {
    const std::string name = g == 0 ? "full" : "sliding";
    std::vector<std::int32_t> counted = groups_[g].held;
    for (const auto& [id, sequence] : sequences_) {
      const std::int64_t held = std::ssize(sequence.tables[g]) * config_.page_tokens;
      if (held < sequence.length) return name + ": a table is shorter than its sequence";
      if (sequence.has_run[g] && held != config_.longest()) return name + ": a run is not whole";
      for (std::int64_t i = 0; i < std::ssize(sequence.tables[g]); ++i) {
        const std::int32_t page = sequence.tables[g][i];
        if (page == kNoPage) {
          if (g == 0 || config_.is_contiguous()) return name + ": a page is missing";
          if ((i + 1) * config_.page_tokens > sequence.length - config_.window + 1) {
            return "sliding: a page inside the window is missing";
          }
        } else if (page < 0 || page >= std::ssize(counted)) {
          return name + ": a table names a page that does not exist";
        } else if (sequence.has_run[g] && page != sequence.tables[g][0] + i) {
          return name + ": a run is broken";
        } else {
          ++counted[page];
        }
      }
    }
    if (counted != groups_[g].references) return name + ": counts and tables disagree";
    if (std::string wrong = check_free(g, counted); !wrong.empty()) return name + wrong;
  }
  return "";
}

/// `counted`: references of each page, by the tables.
std::string KvPool::check_free(int g, const std::vector<std::int32_t>& counted) const {
  const std::int64_t unit = unit_pages();
  std::vector<char> is_free(groups_[g].in_use.size(), 0);
  for (const std::int32_t page : groups_[g].free) {
    if (is_free[page / unit]++ > 0) return ": a page is free twice";
  }
  for (std::size_t u = 0; u < is_free.size(); ++u) {
    const auto first = counted.begin() + static_cast<std::ptrdiff_t>(u) * unit;
    const std::int64_t used = unit - std::count(first, first + unit, 0);
    if (used != groups_[g].in_use[u]) return ": a run is miscounted";
    if (used > 0 && is_free[u]) return ": a page in use is free";
    if (used == 0 && !is_free[u]) return ": a page is lost";
  }
  return "";
}

}  // namespace gauntlet::engine::inline kv
