#include "lab/author/linked.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/ranks/must.h"
#include "core/ranks/thread_group.h"

namespace gauntlet::lab::inline author {
namespace {

/// What the outcomes of a side are on rank 1 of two after a run.
std::map<std::string, double> outcomes_of(
    const std::function<Side(const std::shared_ptr<ranks::LinkedGroup>&)>& make,
    const ranks::Fabric& fabric) {
  std::map<std::string, double> seen;
  const auto done = ranks::run_threads(2, [&](ranks::Group& group) -> Expected<void> {
    const auto links = linked({.group = &group, .rank = group.rank(), .size = 2}, fabric);
    Side side = make(links);
    ranks::must(group.barrier());
    side.run();
    if (group.rank() == 1) seen = side.take_outcomes().values;
    return {};
  });
  EXPECT_TRUE(done) << done.error().message;
  return seen;
}

TEST(Linked, counts_what_a_rank_sends) {
  const auto outcomes = outcomes_of(
      [](const auto& links) {
        return counted({messages_of(links), sent_kib(links), between_kib(links)}, [links] {
          std::vector<std::byte> bytes(4096);
          ranks::must(links->group->broadcast(bytes, 0));
          ranks::must(links->group->broadcast(bytes, 1));
        });
      },
      {.ranks_per_host = 2});
  EXPECT_EQ(outcomes.at("messages"), 1);
  EXPECT_NEAR(outcomes.at("sent_kib"), 4, 0.1) << "with what a message begins with";
  EXPECT_EQ(outcomes.at("between_kib"), 0);
}

TEST(Linked, tells_time_on_the_link_that_is_waited_for_from_time_that_is_not) {
  const ranks::Fabric slow{.between = {.latency_s = 0.04}};
  const auto after = [&](std::chrono::milliseconds computing) {
    return outcomes_of(
        [computing](const auto& links) {
          return counted({wire_ms(links), exposed_ms(links), hidden_percent(links)},
                         [links, computing] {
                           std::byte byte{};
                           if (links->group->rank() == 0) {
                             ranks::must(links->group->send(1, std::span(&byte, 1)));
                           } else {
                             std::this_thread::sleep_for(computing);
                             ranks::must(links->group->receive(0, std::span(&byte, 1)));
                           }
                         });
        },
        slow);
  };
  const auto hidden = after(std::chrono::milliseconds(120));
  EXPECT_NEAR(hidden.at("wire_ms"), 40, 1);
  EXPECT_LT(hidden.at("exposed_ms"), 10);
  EXPECT_GT(hidden.at("hidden_percent"), 75);
  const auto exposed = after(std::chrono::milliseconds(0));
  EXPECT_NEAR(exposed.at("wire_ms"), 40, 1);
  EXPECT_GT(exposed.at("exposed_ms"), 20);
  EXPECT_LT(exposed.at("hidden_percent"), 50);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
