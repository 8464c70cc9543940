// check(): a programmer's fault throws Fault with the place it was found. Expected failures use
// Expected<T>.
#pragma once
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gauntlet {

class Fault : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void fail(std::string_view what,
                              std::source_location where = std::source_location::current()) {
  std::string_view file = where.file_name();
  if (auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  throw Fault(std::string(what) + " (" + std::string(file) + ":" + std::to_string(where.line()) +
              ")");
}

inline void check(bool holds, std::string_view what,
                  std::source_location where = std::source_location::current()) {
  if (!holds) fail(what, where);
}

}  // namespace gauntlet
