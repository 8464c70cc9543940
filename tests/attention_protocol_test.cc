// Barriers, stages and turns of attention by warpgroups, run by an emulated block in random orders:
// does every product read the block that it is meant to, and does every role come to its end?
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/labs/attention_ladder/attention_schedule.h"
#include "core/random.h"

namespace gauntlet::tests {
namespace {

using namespace labs::attention_ladder;

constexpr int kWarps = 4;  // of a warpgroup
constexpr int kStages = 2;

/// One step of a role.
struct Step {
  enum class Do {
    wait,         // for the phase of this parity of barrier `at`
    arrive,       // at barrier `at`
    expect,       // one arrival and `value` copies
    copy,         // starts a copy of `value` into buffer `at`, which counts towards barrier `to`
    write,        // of `value` into buffer `at`, at once
    begin_read,   // of buffer `at`, which holds `value`
    end_read,     // of buffer `at`
    arrive_turn,  // at named barrier `at`
    take_turn,    // arrives there and waits for the others
  };
  Do what;
  std::string at;
  int value = 0;
  std::string to = {};
};
using Role = std::vector<Step>;

/// A block's shared memory and barriers. What is read while it is written, or holds something else
/// than it is read for, is a fault.
class EmulatedBlock {
 public:
  explicit EmulatedBlock(std::uint64_t seed) : random_(seed) {}

  void add_barrier(const std::string& name, int arrivals) { barriers_[name].needed = arrivals; }
  void add_turn(const std::string& name, int warps) { turns_[name].needed = warps; }
  void add_role(Role role) { roles_.push_back({std::move(role)}); }

  /// The first fault, or nothing once all roles have ended.
  std::string run() {
    while (fault_.empty()) {
      std::vector<int> ready;
      for (int i = 0; i < static_cast<int>(roles_.size()); ++i) {
        if (is_ready(role(i))) ready.push_back(i);
      }
      for (int i = 0; i < static_cast<int>(copies_.size()); ++i) ready.push_back(-1 - i);
      if (ready.empty()) break;
      const int next = ready[random_.next_below(ready.size())];
      next < 0 ? finish_copy(-1 - next) : advance(role(next));
    }
    if (!fault_.empty()) return fault_;
    for (const Running& each : roles_) {
      if (each.at < each.steps.size()) return "stuck at " + each.steps[each.at].at;
    }
    for (const auto& [name, turn] : turns_) {
      if (turn.arrived != 0) return "warps are left over at " + name;
    }
    return "";
  }

 private:
  struct Running {
    Role steps;
    std::size_t at = 0;
    std::optional<int> turn = {};  // that it arrived for
  };
  struct Barrier {
    int needed = 0;
    int arrived = 0;
    int copies = 0;
    std::uint32_t phase = 0;
  };
  struct Turn {
    int needed = 0;
    int arrived = 0;
    int number = 0;
  };
  struct Buffer {
    int value = -1;  // poisoned
    int readers = 0;
    bool written = false;  // by a copy under way
  };
  struct Copy {
    std::string buffer;
    int value;
    std::string barrier;
  };

  Running& role(int i) { return roles_[static_cast<std::size_t>(i)]; }

  bool is_ready(const Running& role) {
    if (role.at == role.steps.size()) return false;
    const Step& step = role.steps[role.at];
    if (step.what == Step::Do::wait) {
      return (barriers_.at(step.at).phase & 1) != static_cast<std::uint32_t>(step.value);
    }
    return !role.turn || turns_.at(step.at).number > *role.turn;
  }

  void advance(Running& role) {
    const Step& step = role.steps[role.at];
    switch (step.what) {
      case Step::Do::wait:
        break;
      case Step::Do::arrive:
        arrive(step.at, 0);
        break;
      case Step::Do::expect:
        arrive(step.at, step.value);
        break;
      case Step::Do::copy:
      case Step::Do::write:
        overwrite(step);
        break;
      case Step::Do::begin_read:
        begin_read(step);
        break;
      case Step::Do::end_read:
        --buffers_[step.at].readers;
        break;
      case Step::Do::arrive_turn:
        arrive_turn(step.at);
        break;
      case Step::Do::take_turn:
        if (!role.turn) {
          role.turn = turns_.at(step.at).number;
          arrive_turn(step.at);
          return;
        }
        role.turn.reset();
        break;
    }
    ++role.at;
  }

  void arrive(const std::string& name, int copies) {
    Barrier& barrier = barriers_.at(name);
    barrier.copies += copies;
    if (++barrier.arrived > barrier.needed) fault_ = "too many arrivals at " + name;
    complete(barrier);
  }
  static void complete(Barrier& barrier) {
    if (barrier.arrived != barrier.needed || barrier.copies != 0) return;
    barrier.arrived = 0;
    ++barrier.phase;
  }

  void arrive_turn(const std::string& name) {
    Turn& turn = turns_.at(name);
    if (++turn.arrived < turn.needed) return;
    turn.arrived = 0;
    ++turn.number;
  }

  void overwrite(const Step& step) {
    Buffer& buffer = buffers_[step.at];
    if (buffer.readers > 0 || buffer.written) fault_ = step.at + " is overwritten while in use";
    buffer.value = step.what == Step::Do::write ? step.value : -1;
    if (step.what == Step::Do::write) return;
    buffer.written = true;
    copies_.push_back({step.at, step.value, step.to});
  }
  void finish_copy(int i) {
    const Copy copy = copies_[static_cast<std::size_t>(i)];
    copies_.erase(copies_.begin() + i);
    buffers_[copy.buffer].value = copy.value;
    buffers_[copy.buffer].written = false;
    Barrier& barrier = barriers_.at(copy.barrier);
    --barrier.copies;
    complete(barrier);
  }
  void begin_read(const Step& step) {
    Buffer& buffer = buffers_[step.at];
    ++buffer.readers;
    if (buffer.value != step.value) {
      fault_ = step.at + " holds " + std::to_string(buffer.value) + " in place of " +
               std::to_string(step.value);
    }
  }

  Random random_;
  std::vector<Running> roles_;
  std::map<std::string, Barrier> barriers_;
  std::map<std::string, Turn> turns_;
  std::map<std::string, Buffer> buffers_;
  std::vector<Copy> copies_;
  std::string fault_;
};

/// What the roles of wgmma_attention.cuh do, in their order.
struct Protocol {
  TileOrder tiles;
  int groups;
  int keys;
  std::vector<int> given;  // the tiles that the block is given
  enum class Mistake {
    none,
    releases_keys_early,
    forgets_a_turn,
    forgets_an_absent_group
  } mistake = Mistake::none;

  static std::string name(const char* what, int i) { return what + std::to_string(i); }
  int last_first(const Tile& tile) const { return tile.first + (groups - 1) * kGroupRows; }
  /// Tells blocks of different heads apart.
  int block_value(const Tile& tile, int block) const { return tile.head * 1000 + block; }

  Role producer() const {
    using enum Step::Do;
    Role role;
    RingAt<kStages> at;
    std::uint32_t q_parity = 0;
    const auto wait_q = [&] {
      role.push_back({wait, "q_empty", static_cast<int>(q_parity ^ 1)});
      q_parity ^= 1;
    };
    for (const int index : given) {
      const Tile tile = tiles[index];
      wait_q();
      role.push_back({write, "tile", index});
      const int absent = tile.first < 0 ? -tile.first / kGroupRows : 0;
      const int expected = mistake == Mistake::forgets_an_absent_group ? 0 : absent;
      role.push_back({expect, "q_full", groups - expected});
      for (int group = absent; group < groups; ++group) {
        role.push_back({copy, name("q", group), index, "q_full"});
      }
      for (int block = blocks_seen(last_first(tile), keys) - 1; block >= 0; --block) {
        for (const char* what : {"k", "v"}) {
          const std::string full = name(what, at.stage) + "_full";
          role.push_back({wait, name(what, at.stage) + "_empty", static_cast<int>(at.parity ^ 1)});
          role.push_back({expect, full, 1});
          role.push_back({copy, name(what, at.stage), block_value(tile, block), full});
        }
        at.advance();
      }
    }
    wait_q();
    role.push_back({write, "tile", -1});
    role.push_back({arrive, "q_full"});
    return role;
  }

  /// A warp of a group; turns count warps.
  Role consumer(int group) const {
    using enum Step::Do;
    Role role;
    RingAt<kStages> at;
    const auto wait_full = [&](const char* what, const RingAt<kStages>& of) {
      role.push_back({wait, name(what, of.stage) + "_full", static_cast<int>(of.parity)});
    };
    const auto give_back = [&](const char* what, const RingAt<kStages>& of) {
      role.push_back({arrive, name(what, of.stage) + "_empty"});
    };
    const auto begin = [&](const std::string& what, int value) {
      role.push_back({begin_read, what, value});
    };
    const auto end = [&](const std::string& what) { role.push_back({end_read, what}); };
    const auto await_turn = [&] { role.push_back({Step::Do::take_turn, name("turn", group)}); };
    const auto give_turn = [&](int to) { role.push_back({arrive_turn, name("turn", to)}); };
    const int next = (group + 1) % groups;

    if (group == 0) give_turn(0);
    std::uint32_t parity = 0;
    for (const int index : given) {
      const Tile tile = tiles[index];
      role.push_back({wait, "q_full", static_cast<int>(parity)});
      parity ^= 1;
      begin("tile", index);
      end("tile");
      const int blocks = blocks_seen(tile.first + group * kGroupRows, keys);
      const int passed = blocks_seen(last_first(tile), keys) - blocks;
      for (int i = 0; i < passed; ++i) {
        for (const char* what : {"k", "v"}) {
          wait_full(what, at);
          give_back(what, at);
        }
        at.advance();
        if (blocks > 0 || i > 0) {
          await_turn();
          if (mistake != Mistake::forgets_a_turn) give_turn(next);
        }
      }
      if (blocks == 0) {
        role.push_back({arrive, "q_empty"});
        continue;
      }
      // Scores of a block: issued, and waited for.
      const auto issue_scores = [&](int block) {
        begin(name("q", group), index);
        begin(name("k", at.stage), block_value(tile, block));
      };
      const auto end_scores = [&](int block) {
        if (mistake == Mistake::releases_keys_early) give_back("k", at);
        end(name("k", at.stage));
        end(name("q", group));
        if (mistake != Mistake::releases_keys_early) give_back("k", at);
        if (block == 0) role.push_back({arrive, "q_empty"});
      };
      wait_full("k", at);
      issue_scores(blocks - 1);
      end_scores(blocks - 1);
      for (int block = blocks - 2; block >= 0; --block) {
        const RingAt<kStages> of_values = at;
        at.advance();
        wait_full("k", at);
        await_turn();
        issue_scores(block);
        wait_full("v", of_values);
        begin(name("v", of_values.stage), block_value(tile, block + 1));
        give_turn(next);
        end_scores(block);
        end(name("v", of_values.stage));
        give_back("v", of_values);
      }
      wait_full("v", at);
      begin(name("v", at.stage), block_value(tile, 0));
      end(name("v", at.stage));
      give_back("v", at);
      at.advance();
    }
    role.push_back({wait, "q_full", static_cast<int>(parity)});
    begin("tile", -1);
    if (group == 0) await_turn();
    return role;
  }

  std::string run(std::uint64_t seed) const {
    EmulatedBlock block(seed);
    block.add_barrier("q_full", 1);
    block.add_barrier("q_empty", kWarps * groups);
    for (int stage = 0; stage < kStages; ++stage) {
      for (const char* what : {"k", "v"}) {
        block.add_barrier(name(what, stage) + "_full", 1);
        block.add_barrier(name(what, stage) + "_empty", kWarps * groups);
      }
    }
    for (int group = 0; group < groups; ++group) block.add_turn(name("turn", group), 2 * kWarps);
    block.add_role(producer());
    for (int group = 0; group < groups; ++group) {
      for (int warp = 0; warp < kWarps; ++warp) block.add_role(consumer(group));
    }
    return block.run();
  }
};

/// A block's share of tiles, long and short ones of several heads.
Protocol protocol_of(int groups, int keys) {
  const TileOrder tiles{
      .heads = 2, .heads_at_once = 2, .sequence = 640, .rows = groups * kGroupRows};
  Protocol protocol{.tiles = tiles, .groups = groups, .keys = keys, .given = {}};
  for (int i = 0; i < tiles.count(); i += 1 + i % 2) protocol.given.push_back(i);
  return protocol;
}

TEST(AttentionProtocol, reads_what_it_means_to_and_ends_in_any_order) {
  for (const auto& [groups, keys] : {std::pair{2, 128}, {3, 128}, {3, 64}, {2, 192}}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      EXPECT_EQ(protocol_of(groups, keys).run(seed), "") << groups << " groups, seed " << seed;
    }
  }
}

TEST(AttentionProtocol, ends_without_any_tile) {
  Protocol protocol = protocol_of(3, 128);
  protocol.given.clear();
  EXPECT_EQ(protocol.run(1), "");
}

TEST(AttentionProtocol, the_emulation_finds_mistakes) {
  using enum Protocol::Mistake;
  for (const auto mistake : {releases_keys_early, forgets_a_turn, forgets_an_absent_group}) {
    int found = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Protocol protocol = protocol_of(3, 128);
      protocol.mistake = mistake;
      found += protocol.run(seed).empty() ? 0 : 1;
    }
    EXPECT_GT(found, 0) << static_cast<int>(mistake);
  }
}

}  // namespace
}  // namespace gauntlet::tests
