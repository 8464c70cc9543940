#include "lab/measure/observations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline measure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A side that observes what it is told, and forgets what it was asked for.
struct Observer {
  double rate = 0;
  std::vector<float> seconds;

  Side side() {
    Side made([] {});
    made.outcomes = [this] { return std::map<std::string, double>{{"rate", rate}}; };
    made.distributions = [this] {
      return std::map<std::string, std::vector<float>>{{"seconds", std::exchange(seconds, {})}};
    };
    return made;
  }
};

std::vector<SideMeasurement> written(const Observations& observations, std::size_t sides) {
  std::vector<SideMeasurement> out(sides);
  observations.write_to(out);
  return out;
}

TEST(Observations, hold_what_was_seen_in_samples_that_count) {
  Observer observer;
  const Side side = observer.side();
  Observations observations(2);
  observer.seconds = {9, 9};  // while it was verified
  observations.discard(1, side);
  observer.seconds = {1, 2};
  observer.rate = 10;
  observations.take(1, side);
  observer.seconds = {3};
  observer.rate = 20;
  observations.take(1, side);
  observations.keep_block();
  observer.seconds = {4};
  observer.rate = 60;
  observations.take(1, side);
  observations.keep_block();
  const auto out = written(observations, 2);
  EXPECT_THAT(out[1].distributions.at("seconds"),
              ElementsAre(ElementsAre(1, 2, 3), ElementsAre(4)));
  EXPECT_DOUBLE_EQ(out[1].outcomes.at("rate"), 30);
  EXPECT_THAT(out[0].distributions, IsEmpty());
  EXPECT_THAT(out[0].outcomes, IsEmpty());
}

TEST(Observations, leave_out_blocks_that_were_dropped_or_never_ended) {
  Observer observer;
  const Side side = observer.side();
  Observations observations(1);
  observer.seconds = {1};
  observations.take(0, side);
  observations.drop_block();
  observer.seconds = {2};
  observations.take(0, side);
  const auto out = written(observations, 1);
  EXPECT_THAT(out[0].distributions, IsEmpty());
  EXPECT_THAT(out[0].outcomes, IsEmpty());
}

TEST(Observations, keep_whole_blocks_up_to_a_limit) {
  Observer observer;
  const Side side = observer.side();
  Observations observations(1);
  for (int block = 0; block < 3; ++block) {
    observer.seconds.assign(40'000, static_cast<float>(block));
    observations.take(0, side);
    observations.keep_block();
  }
  const auto out = written(observations, 1);
  EXPECT_EQ(out[0].distributions.at("seconds").size(), 2u);
}

TEST(Observations, tell_of_a_side_that_states_what_the_lab_counts) {
  Side side([] {});
  bool states = false;
  side.outcomes = [&] { return std::map<std::string, double>{{states ? "forks" : "spoons", 1}}; };
  Observations observations(2);
  observations.take(1, side);
  EXPECT_EQ(observations.stated(1), "");
  states = true;
  observations.discard(1, side);
  states = false;
  observations.take(1, side);
  observations.keep_block();
  EXPECT_EQ(observations.stated(1), "forks");
  EXPECT_EQ(observations.stated(0), "");
  EXPECT_THAT(written(observations, 2)[1].outcomes, ElementsAre(testing::Key("spoons")));
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
