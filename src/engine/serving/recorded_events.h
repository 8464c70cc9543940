// What a request's callbacks were told, for tests of the service.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engine/serving/service.h"

namespace gauntlet::engine::inline serving {

struct RecordedEvents {
  std::map<int, std::vector<std::int32_t>> tokens;  // by choice
  std::map<int, FinishEvent> ends;
  std::vector<TokenEvent> events;

  RequestEvents events_to() {
    return {.on_token =
                [this](const TokenEvent& event) {
                  EXPECT_FALSE(ends.contains(event.choice)) << "a token after the end";
                  tokens[event.choice].push_back(event.token);
                  events.push_back(event);
                  return Verdict::go_on;
                },
            .on_finish =
                [this](const FinishEvent& event) {
                  EXPECT_TRUE(ends.emplace(event.choice, event).second) << "ended twice";
                }};
  }
  FinishReason reason(int choice = 0) const { return ends.at(choice).reason; }
};

}  // namespace gauntlet::engine::inline serving
