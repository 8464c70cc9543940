#include "engine/serving/fair_shares.h"

#include "core/check.h"

namespace gauntlet::engine::inline serving {
namespace {

template <class Places, class Key>
std::int64_t held(const Places& places, const Key& key) {
  const auto found = places.find(key);
  return found == places.end() ? 0 : found->second;
}

template <class Places, class Key>
void drop_one(Places& places, const Key& key) {
  const auto found = places.find(key);
  check(found != places.end(), "a place was given back that nobody held");
  if (--found->second == 0) places.erase(found);
}

}  // namespace

void FairShares::take(const Caller& caller) {
  ++accounts_[caller.account];
  ++calls_[caller.call];
}

void FairShares::give_back(const Caller& caller) {
  drop_one(accounts_, caller.account);
  drop_one(calls_, caller.call);
}

Load FairShares::load(const Caller& caller) const {
  return {.account = static_cast<double>(held(accounts_, caller.account)) / caller.share,
          .call = held(calls_, caller.call)};
}

bool FairShares::may_move(const Caller& from, const Caller& to) const {
  if (from.account == to.account) {
    return held(calls_, from.call) - 1 >= held(calls_, to.call) + 1;
  }
  const auto after = [&](const Caller& caller, int change) {
    return static_cast<double>(held(accounts_, caller.account) + change) / caller.share;
  };
  return after(from, -1) >= after(to, +1);
}

}  // namespace gauntlet::engine::inline serving
