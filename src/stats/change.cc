#include "stats/change.h"

#include "core/check.h"

namespace gauntlet::stats {

Change change(const Interval& ratio) {
  if (!ratio.known()) return Change::unclear;
  if (ratio.lo > 1) return Change::higher;
  if (ratio.hi < 1) return Change::lower;
  const bool near = ratio.lo > 1 / (1 + kSameWithin) && ratio.hi < 1 + kSameWithin;
  return near ? Change::same : Change::unclear;
}

Gain gain(const Interval& ratio, double bar) {
  if (ratio.lo > bar) return Gain::gain;
  return ratio.hi < 1 ? Gain::loss : Gain::no_gain;
}

const char* name_of(Change change) {
  switch (change) {
    case Change::same:
      return "same";
    case Change::higher:
      return "higher";
    case Change::lower:
      return "lower";
    case Change::unclear:
      return "unclear";
  }
  fail("no such change");
}

const char* name_of(Gain gain) {
  switch (gain) {
    case Gain::gain:
      return "gain";
    case Gain::no_gain:
      return "no_gain";
    case Gain::loss:
      return "loss";
  }
  fail("no such gain");
}

std::string words_of(Gain gain) { return gain == Gain::no_gain ? "no gain" : name_of(gain); }

}  // namespace gauntlet::stats
