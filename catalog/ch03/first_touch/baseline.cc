// One thread zeroes the table before all use it.
#include <memory>

#include "catalog/ch03/first_touch/pair.h"
#include "catalog/ch03/first_touch/table.h"
#include "lab/author/side.h"

namespace gauntlet::ch03::first_touch::cpu {

lab::Side baseline(const Params& p, const lab::Cpu& cpu) {
  const auto table = std::make_shared<Table>(p.words);
  table->touch(0, p.words);
  lab::Side side([p, table, pool = cpu.pool] { use_table(p, table->words(), *pool); });
  side.outcomes = [p, table, pool = cpu.pool]() -> std::map<std::string, double> {
    return {{"local_share", least_local_share(p, table->words(), *pool)}};
  };
  return side;
}

}  // namespace gauntlet::ch03::first_touch::cpu
