// Do places move to whoever has less, by shares, and never back?
#include "engine/serving/fair_shares.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet::engine::inline serving {
namespace {

Caller caller(std::int32_t account, std::int64_t call, double share = 1) {
  return {.account = account, .share = share, .call = call};
}

TEST(FairShares, count_by_account_and_by_call) {
  FairShares shares;
  shares.take(caller(1, 10, 2));
  shares.take(caller(1, 11, 2));
  shares.take(caller(1, 11, 2));
  EXPECT_EQ(shares.load(caller(1, 11, 2)), (Load{.account = 1.5, .call = 2}));
  EXPECT_EQ(shares.load(caller(1, 12, 2)), (Load{.account = 1.5, .call = 0}));
  EXPECT_EQ(shares.load(caller(2, 20)), Load());
  shares.give_back(caller(1, 11, 2));
  shares.give_back(caller(1, 11, 2));
  shares.give_back(caller(1, 10, 2));
  EXPECT_EQ(shares, FairShares());
}

TEST(FairShares, refuse_to_take_back_what_nobody_holds) {
  FairShares shares;
  shares.take(caller(1, 10));
  EXPECT_ANY_THROW(shares.give_back(caller(1, 11)));
}

TEST(FairShares, leave_a_single_place_where_it_is) {
  FairShares shares;
  shares.take(caller(1, 10));
  EXPECT_FALSE(shares.may_move(caller(1, 10), caller(1, 11)));
  EXPECT_FALSE(shares.may_move(caller(1, 10), caller(2, 20)));
  shares.take(caller(1, 10));
  EXPECT_TRUE(shares.may_move(caller(1, 10), caller(1, 11)));
  EXPECT_TRUE(shares.may_move(caller(1, 10), caller(2, 20)));
  EXPECT_FALSE(shares.may_move(caller(1, 10), caller(1, 10)));
}

/// Moves places at random as long as it is fair: it must end, and end with what the shares ask for.
TEST(FairShares, moving_places_ends_in_the_shares) {
  const Random random(7);
  for (std::uint64_t round = 0; round < 50; ++round) {
    FairShares shares;
    const double share = 1 + static_cast<double>(random.bits(round) % 4);
    const Caller light = caller(1, 10);
    const Caller heavy = caller(2, 20, share);
    constexpr int kPlaces = 60;
    int of_light = kPlaces;
    for (int i = 0; i < kPlaces; ++i) shares.take(light);
    int moves = 0;
    while (shares.may_move(light, heavy)) {
      shares.give_back(light);
      shares.take(heavy);
      --of_light;
      ASSERT_LT(++moves, kPlaces);
      EXPECT_FALSE(shares.may_move(heavy, light)) << "it would go to and fro";
    }
    EXPECT_NEAR(of_light, kPlaces / (1 + share), 1.0);
  }
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
