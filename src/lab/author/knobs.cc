#include "lab/author/knobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text/text.h"

namespace gauntlet::lab::inline author {

std::optional<BackendKind> backend_from(const std::string& name) {
  for (const BackendKind kind : kBackends) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

Knobs Knobs::defaults(const std::vector<Knob>& declared, BackendKind backend) {
  Knobs knobs;
  for (const Knob& knob : declared) {
    const bool gpu = backend == BackendKind::cuda && knob.cuda != 0;
    knobs.values_[knob.name] = gpu || knob.cpu == 0 ? knob.cuda : knob.cpu;
  }
  return knobs;
}

Expected<Knobs> Knobs::with(const std::vector<Knob>& declared, const Overrides& overrides) const {
  Knobs changed = *this;
  for (const auto& [name, value] : overrides) {
    const auto knob = std::ranges::find_if(declared, [&](const Knob& k) { return k.name == name; });
    if (knob == declared.end()) {
      std::vector<std::string> names;
      for (const Knob& k : declared) names.push_back(k.name);
      const std::string near = nearest(name, names);
      return Error{fmt::format("there is no knob '{}'{}; the knobs are: {}", name,
                               near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))),
                   ErrorKind::wrong_use};
    }
    if (value < knob->min || value > knob->max) {
      return Error{fmt::format("{}={} is out of range: it must be between {} and {}", name, value,
                               knob->min, knob->max),
                   ErrorKind::wrong_use};
    }
    if (value % knob->multiple_of != 0) {
      return Error{fmt::format("{}={} does not fit: it must be a multiple of {}", name, value,
                               knob->multiple_of),
                   ErrorKind::wrong_use};
    }
    changed.values_[name] = value;
  }
  return changed;
}

std::int64_t Knobs::operator[](const std::string& name) const {
  const auto found = values_.find(name);
  check(found != values_.end(), "pair asks for a knob it did not declare: " + name);
  return found->second;
}

}  // namespace gauntlet::lab::inline author
