// Properties that a test claims of all inputs: RapidCheck makes them and, where one fails, finds a
// small one that fails, too.
#pragma once
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace gauntlet {

/// The same inputs in every run, unless RC_PARAMS says otherwise ("seed=7 max_success=100000").
template <class Property>
void check_property(const std::string& name, Property&& property) {
  setenv("RC_PARAMS", "seed=1 max_success=300", /*overwrite=*/0);
  EXPECT_TRUE(rc::check(name, std::forward<Property>(property)));
}

}  // namespace gauntlet
