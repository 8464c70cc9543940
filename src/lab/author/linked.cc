#include "lab/author/linked.h"

#include "core/ranks/must.h"
#include "lab/author/lab_counts.h"

namespace gauntlet::lab::inline author {
namespace {

using Group = std::shared_ptr<ranks::LinkedGroup>;

template <class Value>
std::function<double()> reader(const Group& linked, Value value) {
  return [linked, value] { return static_cast<double>(value(linked->links->traffic())); };
}

}  // namespace

std::shared_ptr<ranks::LinkedGroup> linked(const Ranks& ranks, const ranks::Fabric& fabric) {
  return std::make_shared<ranks::LinkedGroup>(ranks::must(ranks::over_links(*ranks.group, fabric)));
}

Count messages_of(const Group& linked) {
  return LabCounts::make("messages",
                         reader(linked, [](const ranks::LinkTraffic& t) { return t.messages; }));
}
Count sent_kib(const Group& linked) {
  return LabCounts::make("sent_kib", reader(linked, [](const ranks::LinkTraffic& t) {
                           return static_cast<double>(t.bytes) / 1024;
                         }));
}
Count between_kib(const Group& linked) {
  return LabCounts::make("between_kib", reader(linked, [](const ranks::LinkTraffic& t) {
                           return static_cast<double>(t.bytes_between) / 1024;
                         }));
}
Count wire_ms(const Group& linked) {
  return LabCounts::make(
      "wire_ms", reader(linked, [](const ranks::LinkTraffic& t) { return 1e3 * t.wire_s; }));
}
Count exposed_ms(const Group& linked) {
  return LabCounts::make(
      "exposed_ms", reader(linked, [](const ranks::LinkTraffic& t) { return 1e3 * t.exposed_s; }));
}
Count hidden_percent(const Group& linked) {
  return LabCounts::make(
      "hidden_percent",
      reader(linked, [](const ranks::LinkTraffic& t) { return 100 * (t.wire_s - t.exposed_s); }),
      reader(linked, [](const ranks::LinkTraffic& t) { return t.wire_s; }));
}

}  // namespace gauntlet::lab::inline author
