// Stages in turn: the first layer makes a packet, the second uses it, then comes the next.
#include "catalog/ch11/producer_consumer/pair.h"
#include "lab/author/counted.h"

namespace gauntlet::ch11::producer_consumer::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return lab::counted(lab::busy_cpus(), [p] {
    Layer first = layer_of(p, 0), second = layer_of(p, 1);
    std::int8_t packet[kPacketBytes];
    for (std::int64_t at = 0; at < p.steps * kWidth; at += kPacketBytes) {
      process_packet(first, p.in + at, packet);
      process_packet(second, packet, p.out + at);
    }
  });
}

}  // namespace gauntlet::ch11::producer_consumer::cpu
