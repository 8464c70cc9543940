// What a program prints with --format json, or a failure that says what it did instead.
#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace gauntlet::tests {

/// Empty where there is none, after a failure.
inline nlohmann::json json_answer(const Outcome& outcome) {
  nlohmann::json answer = nlohmann::json::parse(outcome.out, nullptr, false);
  if (answer.is_object()) return answer;
  ADD_FAILURE() << "no JSON but exit code " << outcome.code << ": " << outcome.out << outcome.err;
  return nlohmann::json::object();
}

}  // namespace gauntlet::tests
