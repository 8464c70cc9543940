// Who holds how many of the places that run, and who may take one from whom: places are shared
// between accounts by their shares, and within an account between the calls that want them.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace gauntlet::engine::inline serving {

/// On whose behalf a sequence runs.
struct Caller {
  std::int32_t account = 0;
  double share = 1;       // of its account, against the shares of others; above 0
  std::int64_t call = 0;  // the prompts and choices that one call asked for
};

/// What a caller holds already; less goes first.
struct Load {
  double account = 0;     // places over its share
  std::int64_t call = 0;  // places
  auto operator<=>(const Load&) const = default;
};

class FairShares {
 public:
  void take(const Caller& caller);
  void give_back(const Caller& caller);

  Load load(const Caller& caller) const;
  /// A place may move when whoever gives it then holds no less than whoever gets it. So it never
  /// moves back, and one who holds a single place keeps it.
  bool may_move(const Caller& from, const Caller& to) const;

  friend bool operator==(const FairShares&, const FairShares&) = default;

 private:
  std::map<std::int32_t, std::int64_t> accounts_;         // places held, none of them 0
  std::unordered_map<std::int64_t, std::int64_t> calls_;  // likewise
};

}  // namespace gauntlet::engine::inline serving
