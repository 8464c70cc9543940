// Who owns which page of the KV cache. Pages come in two groups, one for layers that see every
// position and one for sliding layers, which keep only their window. Pages are counted, so that
// sequences can share a prefix; a shared page is copied before it is written. No bytes here.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace gauntlet::engine::inline kv {

enum class KvGroup { full, sliding };
inline constexpr int kNumKvGroups = 2;
inline constexpr std::int32_t kNoPage = -1;

struct KvPoolConfig {
  std::int64_t page_tokens = 16;
  std::int64_t window = 128;
  std::int64_t full_pages = 0;
  std::int64_t sliding_pages = 0;
  /// Not 0: contiguous. The first positions of a sequence reserve a run of so many neighbouring
  /// pages in each group; nothing slides out, and a fork's run is copied when it is first written.
  std::int64_t run_pages = 0;

  bool is_contiguous() const { return run_pages > 0; }
  /// Positions that one sequence can have.
  std::int64_t longest() const { return (run_pages > 0 ? run_pages : full_pages) * page_tokens; }
};

/// What a pool has to hold. Pages are whole: a sequence's last may be nearly empty.
struct KvPoolNeeds {
  std::int64_t page_tokens = 16;
  std::int64_t window = 128;
  std::int64_t positions = 0;  // that full layers hold in all
  std::int64_t sequences = 0;
  std::int64_t step_tokens = 0;  // that one step adds before what slid out goes back
};
KvPoolConfig paged_pool(const KvPoolNeeds& needs);

constexpr std::int64_t pages_for(std::int64_t positions, std::int64_t page_tokens) {
  return (positions + page_tokens - 1) / page_tokens;
}

/// The executor copies page `from` to page `to` in every layer of the group before the step.
struct PageCopy {
  KvGroup group;
  std::int32_t from;
  std::int32_t to;
};

/// The executor moves one position's keys and values in every layer of the group before the step,
/// moves in their order and before copies. A slot is a place in its page.
struct RowMove {
  KvGroup group;
  std::int32_t from_page;
  std::int32_t from_slot;
  std::int32_t to_page;
  std::int32_t to_slot;
};

using SequenceId = std::int64_t;

class KvPool {
 public:
  explicit KvPool(const KvPoolConfig& config);

  SequenceId create();
  /// A sequence with the same contents, sharing every page. The parent stays as it is.
  SequenceId fork(SequenceId parent);
  void free(SequenceId sequence);
  /// A sequence over whole pages that others keep: as many of each group as the prefix is long,
  /// with kNoPage where a sliding layer has no use for one any more.
  SequenceId adopt(std::span<const std::int32_t> full, std::span<const std::int32_t> sliding);
  /// Lets a sequence use another page of the same contents in place of a whole one of its own.
  void replace(SequenceId sequence, KvGroup group, std::int64_t index, std::int32_t page);

  /// One more, or one fewer, reference to a page in use that no sequence stands for.
  void hold(KvGroup group, std::int32_t page);
  void release(KvGroup group, std::int32_t page);
  /// Sequences and holders that share a page.
  std::int32_t references(KvGroup group, std::int32_t page) const;

  /// Makes room for `count` more positions, behind those that steps under way write. False, with
  /// nothing changed, when pages are short.
  [[nodiscard]] bool reserve(SequenceId sequence, std::int64_t count);
  /// The reserved positions now hold data; pages that slid out of the window go back.
  void commit(SequenceId sequence, std::int64_t count);
  /// A step under way writes `count` reserved positions, or does so no more. They are no part of
  /// the sequence until they are committed.
  void advance(SequenceId sequence, std::int64_t count);
  void retract(SequenceId sequence, std::int64_t count);
  /// Gives back pages reserved behind all that was committed or is under way.
  void trim(SequenceId sequence);
  /// What the last step wrote at `places`, which ascend, comes to lie behind all that is committed,
  /// in this order and before the next step: the tokens of a path through a tree.
  void bring_together(SequenceId sequence, std::span<const std::int64_t> places);
  /// Where the next step writes: behind all that was committed or is under way.
  std::int64_t next_position(SequenceId sequence) const;
  /// Free pages that reserve() would take.
  std::int64_t pages_needed(SequenceId sequence, KvGroup group, std::int64_t count) const;

  const KvPoolConfig& config() const { return config_; }
  std::int64_t length(SequenceId sequence) const;
  /// Page of each run of page_tokens positions; kNoPage where a sliding layer let go.
  std::span<const std::int32_t> table(SequenceId sequence, KvGroup group) const;
  std::int64_t free_pages(KvGroup group) const;
  std::int64_t num_sequences() const { return static_cast<std::int64_t>(sequences_.size()); }

  /// The copies that reserve() asked for since the last call.
  std::vector<PageCopy> take_copies();
  /// They were not made after all: they come first with the next call.
  void return_copies(std::vector<PageCopy> copies);
  /// The same of what bring_together() asked for.
  std::vector<RowMove> take_moves();
  void return_moves(std::vector<RowMove> moves);

  /// Empty when counts, tables and free lists agree; otherwise what does not.
  std::string check_integrity() const;

 private:
  struct Sequence {
    std::int64_t length = 0;
    std::int64_t ahead = 0;  // positions behind it that steps under way write
    std::vector<std::int32_t> tables[kNumKvGroups];
    bool has_run[kNumKvGroups] = {};  // of its own; where contiguous
  };
  /// Pages are taken by units: single ones, or runs.
  struct Group {
    std::vector<std::int32_t> references;  // per page
    std::vector<std::int32_t> held;        // of those, the ones of hold()
    std::vector<std::int32_t> in_use;      // per unit: its pages with references
    std::vector<std::int32_t> free;        // a stack of units, each by its first page
  };

  std::int64_t unit_pages() const { return config_.is_contiguous() ? config_.run_pages : 1; }
  std::int64_t pages_needed(const Sequence& sequence, KvGroup group, std::int64_t count) const;
  void grow(Sequence& sequence, KvGroup group, std::int64_t count);
  void take_run(Sequence& sequence, KvGroup group);
  std::int32_t take(Group& group);
  void give(Group& group, std::int32_t page);
  const Sequence& at(SequenceId sequence) const;
  std::string check_free(int group, const std::vector<std::int32_t>& counted) const;

  KvPoolConfig config_;
  Group groups_[kNumKvGroups];
  std::unordered_map<SequenceId, Sequence> sequences_;
  SequenceId next_ = 1;
  std::vector<PageCopy> copies_;
  std::vector<RowMove> moves_;
};

}  // namespace gauntlet::engine::inline kv
