#include "engine/kv/prefix_cache.h"

#include <algorithm>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::engine::inline kv {
namespace {

constexpr int index_of(KvGroup group) { return static_cast<int>(group); }
constexpr int kFull = index_of(KvGroup::full);
constexpr int kSliding = index_of(KvGroup::sliding);

}  // namespace

std::size_t PrefixCache::Hash::operator()(KeyView key) const {
  std::uint64_t hash = mix64(static_cast<std::uint64_t>(key.parent));
  for (const std::int32_t token : key.tokens)
    hash = mix64(hash ^ static_cast<std::uint32_t>(token));
  return hash;
}

bool PrefixCache::Equal::operator()(KeyView a, KeyView b) const {
  return a.parent == b.parent && std::ranges::equal(a.tokens, b.tokens);
}

PrefixCache::PrefixCache(KvPool& pool, PrefixCaching caching)
    : pool_(pool), caching_(caching), page_tokens_(pool.config().page_tokens) {}

PrefixCache::~PrefixCache() {
  for (const auto& [sequence, chain] : chains_) {
    for (const std::int32_t page : chain.sliding) pool_.release(KvGroup::sliding, page);
    pool_.free(sequence);
  }
  for (const auto& [key, entry] : entries_) {
    pool_.release(KvGroup::full, entry.pages[kFull]);
    if (entry.pages[kSliding] != kNoPage) pool_.release(KvGroup::sliding, entry.pages[kSliding]);
  }
}

/// The first page that a token after `pages` whole ones still sees through the window.
std::int64_t PrefixCache::first_in_window(std::int64_t pages) const {
  return std::max<std::int64_t>(0, pages * page_tokens_ - pool_.config().window + 1) / page_tokens_;
}

std::vector<PrefixCache::Entry*> PrefixCache::reusable(std::span<const std::int32_t> tokens) {
  std::vector<Entry*> found;
  std::int64_t usable = 0;
  std::int64_t unbroken = 0;  // sliding pages up to the last one found
  std::int64_t parent = 0;
  while ((std::ssize(found) + 1) * page_tokens_ < std::ssize(tokens)) {
    const auto page = tokens.subspan(found.size() * page_tokens_, page_tokens_);
    const auto entry = entries_.find(KeyView{parent, page});
    if (entry == entries_.end()) break;
    found.push_back(&entry->second);
    parent = entry->second.serial;
    unbroken = entry->second.pages[kSliding] == kNoPage ? 0 : unbroken + 1;
    const std::int64_t pages = std::ssize(found);
    if (unbroken >= pages - first_in_window(pages)) usable = pages;
  }
  found.resize(static_cast<std::size_t>(usable));
  return found;
}

SequenceId PrefixCache::open(std::span<const std::int32_t> tokens) {
  if (caching_ == PrefixCaching::off) return pool_.create();
  Chain chain{.entries = reusable(tokens)};
  chain.num_slid = first_in_window(std::ssize(chain.entries));
  std::vector<std::int32_t> tables[kNumKvGroups];
  for (std::int64_t i = 0; i < std::ssize(chain.entries); ++i) {
    Entry& entry = *chain.entries[i];
    use(entry, KvGroup::full);
    tables[kFull].push_back(entry.pages[kFull]);
    const bool seen = i >= chain.num_slid;
    if (seen) use(entry, KvGroup::sliding);
    tables[kSliding].push_back(seen ? entry.pages[kSliding] : kNoPage);
  }
  const SequenceId sequence = pool_.adopt(tables[kFull], tables[kSliding]);
  chains_.emplace(sequence, std::move(chain));
  return sequence;
}

void PrefixCache::close(SequenceId sequence) {
  pool_.free(sequence);
  const auto found = chains_.find(sequence);
  if (found == chains_.end()) return;
  Chain& chain = found->second;
  for (const std::int32_t page : chain.sliding) pool_.release(KvGroup::sliding, page);
  for (std::size_t i = chain.entries.size(); i-- > 0;) {
    settle(*chain.entries[i], KvGroup::sliding);
    settle(*chain.entries[i], KvGroup::full);
  }
  chains_.erase(found);
}

void PrefixCache::before_step(SequenceId sequence, std::int64_t count) {
  const auto found = chains_.find(sequence);
  if (found == chains_.end()) return;
  Chain& chain = found->second;
  const std::int64_t whole = (pool_.next_position(sequence) + count) / page_tokens_;
  const auto table = pool_.table(sequence, KvGroup::sliding);
  // A long chunk slides past pages of its own when it is committed.
  for (std::int64_t i = std::ssize(chain.entries) + std::ssize(chain.sliding); i < whole; ++i) {
    pool_.hold(KvGroup::sliding, table[i]);
    chain.sliding.push_back(table[i]);
  }
}

void PrefixCache::after_step(SequenceId sequence, std::span<const std::int32_t> tokens) {
  const auto found = chains_.find(sequence);
  if (found == chains_.end()) return;
  Chain& chain = found->second;
  const std::int64_t whole = pool_.length(sequence) / page_tokens_;
  const std::int64_t under_way = pool_.next_position(sequence) / page_tokens_;
  std::vector<std::int32_t> later;  // pages that steps still under way complete
  for (const std::int32_t page : chain.sliding) {
    if (std::ssize(chain.entries) < whole) {
      add_page(sequence, chain, tokens, page);
    } else if (std::ssize(chain.entries) + std::ssize(later) < under_way) {
      later.push_back(page);
    } else {
      pool_.release(KvGroup::sliding, page);
    }
  }
  chain.sliding = std::move(later);
  const auto table = pool_.table(sequence, KvGroup::sliding);
  while (chain.num_slid < std::ssize(chain.entries) && table[chain.num_slid] == kNoPage) {
    settle(*chain.entries[chain.num_slid++], KvGroup::sliding);
  }
}

/// The sequence's next whole page; its sliding page comes held. Where the same contents are known
/// already, the sequence goes on with those, so that a child's page in use keeps its parent's so.
void PrefixCache::add_page(SequenceId sequence, Chain& chain, std::span<const std::int32_t> tokens,
                           std::int32_t sliding) {
  const std::int64_t index = std::ssize(chain.entries);
  Entry* parent = chain.entries.empty() ? nullptr : chain.entries.back();
  const auto own = tokens.subspan(index * page_tokens_, page_tokens_);
  const auto [place, is_new] = entries_.try_emplace(
      Key{parent ? parent->serial : 0, std::vector<std::int32_t>(own.begin(), own.end())});
  Entry& entry = place->second;
  if (is_new) {
    entry.serial = next_serial_++;
    entry.parent = parent;
    entry.key = &place->first;
    entry.pages[kFull] = pool_.table(sequence, KvGroup::full)[index];
    pool_.hold(KvGroup::full, entry.pages[kFull]);
    if (parent) ++parent->children;
  } else {
    use(entry, KvGroup::full);
    pool_.replace(sequence, KvGroup::full, index, entry.pages[kFull]);
  }
  if (entry.pages[kSliding] == kNoPage) {
    entry.pages[kSliding] = sliding;
  } else {
    pool_.release(KvGroup::sliding, sliding);
  }
  chain.entries.push_back(&entry);
}

void PrefixCache::use(Entry& entry, KvGroup group) {
  const int g = index_of(group);
  if (!entry.is_idle[g]) return;
  idle_[g].erase(entry.idle[g]);
  entry.is_idle[g] = false;
}

/// Puts a page that nobody else uses any more among the idle ones.
void PrefixCache::settle(Entry& entry, KvGroup group) {
  const int g = index_of(group);
  const std::int32_t page = entry.pages[g];
  if (page == kNoPage || entry.is_idle[g] || pool_.references(group, page) > 1) return;
  entry.idle[g] = idle_[g].insert(idle_[g].end(), &entry);
  entry.is_idle[g] = true;
}

void PrefixCache::forget(Entry& entry) {
  check(entry.children == 0, "a page was evicted before those that follow it");
  for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
    use(entry, group);
    const std::int32_t page = entry.pages[index_of(group)];
    if (page != kNoPage) pool_.release(group, page);
  }
  if (entry.parent) --entry.parent->children;
  entries_.erase(entries_.find(*entry.key));
}

std::int64_t PrefixCache::evict(KvGroup group, std::int64_t count) {
  std::int64_t done = 0;
  for (; done < count && !idle_[index_of(group)].empty(); ++done) {
    Entry& entry = *idle_[index_of(group)].front();
    if (group == KvGroup::full) {
      forget(entry);
    } else {
      use(entry, group);
      pool_.release(group, entry.pages[kSliding]);
      entry.pages[kSliding] = kNoPage;
    }
  }
  return done;
}

std::int64_t PrefixCache::evictable(KvGroup group) const {
  return std::ssize(idle_[index_of(group)]);
}

std::string PrefixCache::check_integrity() const {
  std::unordered_map<const Entry*, std::int64_t> children;
  std::int64_t idle[kNumKvGroups] = {0, 0};
  for (const auto& [key, entry] : entries_) {
    if (entry.parent) ++children[entry.parent];
    if (key.parent != (entry.parent ? entry.parent->serial : 0)) return "a parent is not its key's";
    for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
      const int g = index_of(group);
      idle[g] += entry.is_idle[g];
      if (entry.pages[g] == kNoPage) {
        if (group == KvGroup::full) return "an entry has no page";
        if (entry.is_idle[g]) return "a page that is not there is idle";
      } else if (entry.is_idle[g] != (pool_.references(group, entry.pages[g]) == 1)) {
        return "a page is idle and used, or neither";
      }
    }
    if (!entry.is_idle[kFull] && entry.parent && entry.parent->is_idle[kFull]) {
      return "a page in use follows an idle one";
    }
  }
  for (const auto& [key, entry] : entries_) {
    if (entry.children != children[&entry]) return "an entry's children are miscounted";
  }
  for (int g = 0; g < kNumKvGroups; ++g) {
    if (idle[g] != std::ssize(idle_[g])) return "an idle list does not match its entries";
  }
  return pool_.check_integrity();
}

}  // namespace gauntlet::engine::inline kv
