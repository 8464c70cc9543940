// Shares whole pages between sequences that begin alike. A page is known by its token ids and the
// page before it, compared in full, so that only equal prefixes share. Its sliding layers' page may
// be evicted alone: then a prefix can be taken up only where a whole window is still there.
#pragma once
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/kv/kv_pool.h"

namespace gauntlet::engine::inline kv {

enum class PrefixCaching { on, off };

class PrefixCache {
 public:
  /// The pool outlives the cache; sequences opened here are closed here.
  PrefixCache(KvPool& pool, PrefixCaching caching);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// A sequence that holds as much of the tokens' beginning as can be taken up, never all of it:
  /// the last token is computed, for what follows it.
  SequenceId open(std::span<const std::int32_t> tokens);
  /// The pages that only the cache keeps stay for others, until they are needed.
  void close(SequenceId sequence);

  /// Around each step: before, when `count` positions are reserved; after, when they are committed,
  /// or not because the step failed. `tokens` are all that the sequence will have, or has.
  void before_step(SequenceId sequence, std::int64_t count);
  void after_step(SequenceId sequence, std::span<const std::int32_t> tokens);

  /// Gives back up to `count` pages, least recently used first; how many it did.
  std::int64_t evict(KvGroup group, std::int64_t count);
  /// Pages that evict() could give back.
  std::int64_t evictable(KvGroup group) const;
  std::int64_t num_pages() const { return static_cast<std::int64_t>(entries_.size()); }

  /// Empty when entries, lists and the pool agree; otherwise what does not.
  std::string check_integrity() const;

 private:
  struct KeyView {
    std::int64_t parent;  // an entry's serial number; 0: none, the first page
    std::span<const std::int32_t> tokens;
  };
  struct Key {
    std::int64_t parent;
    std::vector<std::int32_t> tokens;
    operator KeyView() const { return {parent, tokens}; }
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(KeyView key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(KeyView a, KeyView b) const;
  };
  struct Entry;
  using Idle = std::list<Entry*>;
  struct Entry {
    std::int64_t serial = 0;
    Entry* parent = nullptr;
    const Key* key = nullptr;
    std::int64_t children = 0;
    std::int32_t pages[kNumKvGroups] = {kNoPage, kNoPage};
    bool is_idle[kNumKvGroups] = {false, false};
    Idle::iterator idle[kNumKvGroups];
  };
  struct Chain {
    std::vector<Entry*> entries;        // of the whole pages, from the first
    std::vector<std::int32_t> sliding;  // held for the pages that steps under way complete
    std::int64_t num_slid = 0;          // pages that left the window
  };

  std::vector<Entry*> reusable(std::span<const std::int32_t> tokens);
  std::int64_t first_in_window(std::int64_t pages) const;
  void add_page(SequenceId sequence, Chain& chain, std::span<const std::int32_t> tokens,
                std::int32_t sliding);
  void use(Entry& entry, KvGroup group);
  void settle(Entry& entry, KvGroup group);
  void forget(Entry& entry);

  KvPool& pool_;
  const PrefixCaching caching_;
  const std::int64_t page_tokens_;
  std::unordered_map<Key, Entry, Hash, Equal> entries_;
  std::unordered_map<SequenceId, Chain> chains_;
  /// Entries whose page nobody else uses, the longest unused first. A child comes before its
  /// parent: whoever used the child used the parent, and closing settles the last page first.
  Idle idle_[kNumKvGroups];
  std::int64_t next_serial_ = 1;
};

}  // namespace gauntlet::engine::inline kv
