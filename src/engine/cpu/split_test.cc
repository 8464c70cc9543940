// Do the workers' shares cover a range once, in whole units, and evenly?
#include "engine/cpu/split.h"

#include <gtest/gtest.h>

namespace gauntlet::engine::cpu {
namespace {

TEST(Split, gives_every_element_to_one_worker_in_order) {
  for (const std::int64_t count : {0, 1, 3, 4, 15, 16, 17, 63, 201, 12563}) {
    for (const std::int64_t unit : {1, 4, 16, 32}) {
      for (const int workers : {1, 2, 3, 7, 64}) {
        std::int64_t next = 0;
        for (int worker = 0; worker < workers; ++worker) {
          const Share share = share_of(count, unit, worker, workers);
          EXPECT_EQ(share.begin, next);
          EXPECT_LE(share.begin, share.end);
          next = share.end;
        }
        EXPECT_EQ(next, count) << "units of " << unit << ", " << workers << " workers";
      }
    }
  }
}

TEST(Split, cuts_between_units_only) {
  for (const std::int64_t count : {1, 17, 201, 12563}) {
    for (const std::int64_t unit : {1, 4, 16, 32}) {
      for (int worker = 0; worker < 5; ++worker) {
        const Share share = share_of(count, unit, worker, 5);
        EXPECT_TRUE(share.end % unit == 0 || share.end == count) << count;
      }
    }
  }
}

TEST(Split, makes_shares_that_differ_by_no_more_than_a_unit) {
  for (const std::int64_t units : {0, 1, 6, 7, 8, 100}) {
    for (int worker = 0; worker < 7; ++worker) {
      const Share share = share_of(units * 4, 4, worker, 7);
      EXPECT_GE(share.end - share.begin, units / 7 * 4);
      EXPECT_LE(share.end - share.begin, (units + 6) / 7 * 4);
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
