// Real text that comes with the program: what no model here was trained on, and gauntlet-tiny is
// judged by.
#pragma once
#include <string_view>

namespace gauntlet::embedded {

/// tests/golden/validation.txt, put into the binary by cmake/Embed.cmake.
std::string_view validation_txt();

}  // namespace gauntlet::embedded
