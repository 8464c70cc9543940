// Stages in turn: the first layer makes a packet, the second uses it, then comes the next.
#include <memory>

#include "catalog/ch11/producer_consumer/pair.h"
#include "catalog/ch11/producer_consumer/stage_times.h"
#include "lab/author/side.h"

namespace gauntlet::ch11::producer_consumer::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  const auto times = std::make_shared<StageTimes>();
  lab::Side side = [p, times] {
    Layer first = layer_of(p, 0), second = layer_of(p, 1);
    std::int8_t packet[kPacketBytes];
    for (std::int64_t at = 0; at < p.steps * kWidth; at += kPacketBytes) {
      times->process(0, first, p.in + at, packet);
      times->process(1, second, packet, p.out + at);
    }
  };
  side.outcomes = [times] { return times->take(); };
  return side;
}

}  // namespace gauntlet::ch11::producer_consumer::cpu
