// When may a stream be written again?
#include "server/http/write_turns.h"

#include <gtest/gtest.h>

#include <set>

#include "core/random.h"

namespace gauntlet::server::inline http {
namespace {

using namespace std::chrono_literals;
using Clock = WriteTurns::Clock;

constexpr auto kInterval = 8ms;

Clock::time_point at(std::chrono::nanoseconds time) {
  return Clock::time_point(1234567891ns + time);
}

TEST(WriteTurns, come_an_interval_apart_while_somebody_is_on_time) {
  const WriteTurns turns(kInterval);
  Clock::time_point turn = turns.next(Clock::time_point(), at(0ns));
  for (int i = 0; i < 100; ++i) {
    const Clock::time_point next = turns.next(turn, turn + std::chrono::microseconds(9 * i));
    EXPECT_EQ(next - turn, kInterval);
    turn = next;
  }
}

TEST(WriteTurns, are_never_early_and_late_by_an_eighth_at_most) {
  const WriteTurns turns(kInterval);
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto now = at(std::chrono::nanoseconds(random.next_below(1'000'000'000)));
    const auto turn = now - kInterval / 8 - std::chrono::nanoseconds(random.next_below(20'000'000));
    const auto wait = turns.next(turn, now) - now;
    EXPECT_GE(wait, kInterval);
    EXPECT_LT(wait, kInterval + kInterval / 8);
  }
}

TEST(WriteTurns, are_shared_by_streams_that_were_written_together) {
  const WriteTurns turns(kInterval);
  std::set<Clock::time_point> all;
  for (int i = 0; i < 16; ++i) {
    all.insert(turns.next(Clock::time_point(), at(std::chrono::microseconds(25 * i))));
  }
  EXPECT_LE(all.size(), 2u);
}

TEST(WriteTurns, are_at_once_where_nobody_waits) {
  EXPECT_EQ(WriteTurns(0ns).next(at(0ns), at(5ns)), at(5ns));
  EXPECT_EQ(WriteTurns(3ns).next(at(0ns), at(5ns)), at(8ns));
}

}  // namespace
}  // namespace gauntlet::server::inline http
