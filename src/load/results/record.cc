#include "load/results/record.h"

#include "core/check.h"

namespace gauntlet::load::inline results {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::connect:
      return "connect";
    case Outcome::timeout:
      return "timeout";
    case Outcome::http_status:
      return "http";
    case Outcome::server_error:
      return "server error";
    case Outcome::stream_cut:
      return "stream cut";
    case Outcome::protocol:
      return "protocol";
    case Outcome::interrupted:
      return "interrupted";
  }
  fail("an outcome without a name");
}

std::string RequestRecord::error_name() const {
  std::string name = name_of(outcome);
  if (outcome == Outcome::http_status) name += " " + std::to_string(http_status);
  return name;
}

}  // namespace gauntlet::load::inline results
