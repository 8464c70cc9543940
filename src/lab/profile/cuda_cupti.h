// libcupti through dlopen, with its functions found by name: the headers give the types, nothing is
// linked.
#pragma once
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/expected.h"

namespace gauntlet::lab::inline profile {

/// CUDA's words for why no device can be used; empty where one can.
std::string no_gpu_reason();

/// A CUPTI function did not succeed; the text has its name, the result's name and CUPTI's words for
/// it.
class CuptiError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Cupti {
 public:
  static Expected<std::unique_ptr<Cupti>> open();
  Cupti(const Cupti&) = delete;
  Cupti& operator=(const Cupti&) = delete;

  /// Throws CuptiError. Use through GAUNTLET_CUPTI, which keeps the name and the type together.
  template <class Function, class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    require(name, try_call<Function>(name, arguments...));
  }

  /// For questions whose answer may be no.
  template <class Function, class... Arguments>
  CUptiResult try_call(const char* name, Arguments... arguments) const {
    return reinterpret_cast<Function*>(symbol(name))(arguments...);
  }

  /// Where the library was found.
  const std::string& path() const { return path_; }

 private:
  Cupti(void* library, std::string path) : library_(library), path_(std::move(path)) {}
  void* symbol(const char* name) const;
  void require(const char* name, CUptiResult result) const;

  void* library_;
  std::string path_;
};

#define GAUNTLET_CUPTI(cupti, function, ...) \
  (cupti).call<decltype(::function)>(#function, __VA_ARGS__)
#define GAUNTLET_TRY_CUPTI(cupti, function, ...) \
  (cupti).try_call<decltype(::function)>(#function, __VA_ARGS__)

/// For destructors: an object that cannot be released any more has nobody to tell.
template <class Release>
void quietly(Release release) noexcept {
  try {
    release();
  } catch (const CuptiError&) {
  }
}

/// Which counters the current context may use; empty stands for all of the chip's.
using CounterAvailability = std::vector<std::uint8_t>;

/// Turns metric names into what the hardware counts and back. Needs no GPU and no driver, only the
/// chip's name.
class MetricPlanner {
 public:
  /// `availability` must outlive the planner.
  MetricPlanner(const Cupti& cupti, const std::string& chip,
                const CounterAvailability& availability);
  ~MetricPlanner();
  MetricPlanner(const MetricPlanner&) = delete;
  MetricPlanner& operator=(const MetricPlanner&) = delete;

  /// False if the chip lacks one of the names, after which this planner is of no further use: CUPTI
  /// fails every later call on it. All metrics belong in one call, since CUPTI shares passes only
  /// among those (level minimal on GH100: 3 passes together, 8 when added one by one).
  bool add(const std::vector<const char*>& metrics);

  /// The schedule of all metrics added.
  std::vector<std::uint8_t> config_image() const;
  std::size_t num_passes(std::vector<std::uint8_t>& config_image) const;

  /// Values of the first range, in the order of `metrics`.
  std::vector<double> evaluate(const std::vector<std::uint8_t>& counter_data,
                               const std::vector<const char*>& metrics) const;

 private:
  const Cupti& cupti_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
};

/// Each name is tried on a planner of its own.
std::vector<std::string> unknown_metrics(const Cupti& cupti, const std::string& chip,
                                         const std::vector<std::string>& metrics,
                                         const CounterAvailability& availability);

}  // namespace gauntlet::lab::inline profile
