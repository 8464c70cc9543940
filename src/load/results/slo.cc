#include "load/results/slo.h"

#include <fmt/format.h>

#include "load/numbers.h"

namespace gauntlet::load::inline results {

Expected<Slo> Slo::parse(const std::string& text) {
  Slo slo;
  std::string_view rest = text;
  do {
    const auto [one, others] = cut(rest, ",");
    const auto [name, limit] = cut(one, "=");
    const auto seconds = number<double>(limit);
    std::optional<double>* const field = name == "ttft"   ? &slo.ttft_s
                                         : name == "tpot" ? &slo.tpot_s
                                         : name == "e2e"  ? &slo.e2e_s
                                                          : nullptr;
    if (!field || *field || !seconds || *seconds <= 0) {
      return Error{fmt::format("--slo takes limits in seconds on ttft, tpot and e2e, as in "
                               "ttft=1,tpot=0.05; not '{}'",
                               text),
                   ErrorKind::wrong_use};
    }
    *field = seconds;
    rest = others;
  } while (!rest.empty());
  return slo;
}

bool Slo::is_met_by(const RequestRecord& record) const {
  return record.is_ok() && (!ttft_s || record.ttft_s() <= *ttft_s) &&
         (!tpot_s || record.tpot_s() <= *tpot_s) && (!e2e_s || record.e2e_s() <= *e2e_s);
}

}  // namespace gauntlet::load::inline results
