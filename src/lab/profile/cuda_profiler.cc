// Hardware counters of a stretch of GPU work, by CUPTI's range profiler inside this process. The
// stretch is one user range, and it is run again for each pass that its counters need (user
// replay).
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/cuda/check.h"
#include "lab/profile/cuda_cupti.h"
#include "lab/profile/profiler_backends.h"

namespace gauntlet::lab::inline profile {
namespace {

constexpr const char* kRangeName = "work";

/// The runtime's context on the current device, created if there is none yet. libcuda is not
/// linked.
CUcontext current_context() {
  cuda_check(cudaFree(nullptr));
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  cuda_check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000,
                                              cudaEnableDefault, &found));
  check(found == cudaDriverEntryPointSuccess && function != nullptr,
        "the CUDA driver has no cuCtxGetCurrent");
  CUcontext context = nullptr;
  const CUresult result = reinterpret_cast<decltype(&::cuCtxGetCurrent)>(function)(&context);
  check(result == CUDA_SUCCESS && context != nullptr, "no CUDA context is current");
  return context;
}

std::string chip_name(const Cupti& cupti) {
  int device = 0;
  cuda_check(cudaGetDevice(&device));
  CUpti_Device_GetChipName_Params params{.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE,
                                         .deviceIndex = static_cast<std::size_t>(device)};
  GAUNTLET_CUPTI(cupti, cuptiDeviceGetChipName, &params);
  return params.pChipName;
}

CounterAvailability counter_availability(const Cupti& cupti, CUcontext context) {
  CUpti_Profiler_GetCounterAvailability_Params params{
      .structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE, .ctx = context};
  GAUNTLET_CUPTI(cupti, cuptiProfilerGetCounterAvailability, &params);
  CounterAvailability image(params.counterAvailabilityImageSize);
  params.pCounterAvailabilityImage = image.data();
  GAUNTLET_CUPTI(cupti, cuptiProfilerGetCounterAvailability, &params);
  return image;
}

/// CUPTI's hooks into the driver. They go with the session, so that later timings run without them.
class ProfilerSession {
 public:
  explicit ProfilerSession(const Cupti& cupti) : cupti_(cupti) {
    CUpti_Profiler_Initialize_Params params{.structSize =
                                                CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    GAUNTLET_CUPTI(cupti_, cuptiProfilerInitialize, &params);
  }
  ProfilerSession(const ProfilerSession&) = delete;
  ProfilerSession& operator=(const ProfilerSession&) = delete;
  ~ProfilerSession() {
    CUpti_Profiler_DeInitialize_Params params{.structSize =
                                                  CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE};
    quietly([&] { GAUNTLET_CUPTI(cupti_, cuptiProfilerDeInitialize, &params); });
  }

 private:
  const Cupti& cupti_;
};

/// The range profiler of a context, from enabling to disabling it.
class RangeProfiler {
 public:
  RangeProfiler(const Cupti& cupti, CUcontext context) : cupti_(cupti) {
    CUpti_RangeProfiler_Enable_Params params{
        .structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE, .ctx = context};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerEnable, &params);
    object_ = params.pRangeProfilerObject;
  }
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // Work that throws leaves a pass open; it is closed first, or disabling would be refused.
  ~RangeProfiler() {
    CUpti_RangeProfiler_PopRange_Params pop{
        .structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_};
    CUpti_RangeProfiler_Stop_Params stop{.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE,
                                         .pRangeProfilerObject = object_};
    CUpti_RangeProfiler_Disable_Params disable{
        .structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_};
    if (in_range_) quietly([&] { GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerPopRange, &pop); });
    if (in_pass_) quietly([&] { GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerStop, &stop); });
    quietly([&] { GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerDisable, &disable); });
  }

  /// Both images must outlive the profiler.
  void configure(const std::vector<std::uint8_t>& config_image, std::vector<const char*>& metrics,
                 std::vector<std::uint8_t>& counter_data) {
    CUpti_RangeProfiler_GetCounterDataSize_Params size{
        .structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_,
        .pMetricNames = metrics.data(),
        .numMetrics = metrics.size(),
        .maxNumOfRanges = 1,
        .maxNumRangeTreeNodes = 1};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerGetCounterDataSize, &size);
    counter_data.assign(size.counterDataSize, 0);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params initialize{
        .structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_,
        .counterDataSize = counter_data.size(),
        .pCounterData = counter_data.data()};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerCounterDataImageInitialize, &initialize);
    CUpti_RangeProfiler_SetConfig_Params config{
        .structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_,
        .configSize = config_image.size(),
        .pConfig = config_image.data(),
        .counterDataImageSize = counter_data.size(),
        .pCounterDataImage = counter_data.data(),
        .range = CUPTI_UserRange,
        .replayMode = CUPTI_UserReplay,
        .maxRangesPerPass = 1,
        .numNestingLevels = 1,
        .minNestingLevel = 1,
        .passIndex = 0,
        .targetNestingLevel = 1};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerSetConfig, &config);
  }

  enum class Passes { remain, done };

  Passes run_pass(const std::function<void()>& work) {
    CUpti_RangeProfiler_Start_Params start{
        .structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerStart, &start);
    in_pass_ = true;
    CUpti_RangeProfiler_PushRange_Params push{
        .structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_,
        .pRangeName = kRangeName};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerPushRange, &push);
    in_range_ = true;

    work();
    cuda_check(cudaDeviceSynchronize());

    CUpti_RangeProfiler_PopRange_Params pop{
        .structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerPopRange, &pop);
    in_range_ = false;
    CUpti_RangeProfiler_Stop_Params stop{.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE,
                                         .pRangeProfilerObject = object_};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerStop, &stop);
    in_pass_ = false;
    return stop.isAllPassSubmitted != 0 ? Passes::done : Passes::remain;
  }

  /// Reads the hardware's buffers into the counter data.
  void decode() {
    CUpti_RangeProfiler_DecodeData_Params params{
        .structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE,
        .pRangeProfilerObject = object_};
    GAUNTLET_CUPTI(cupti_, cuptiRangeProfilerDecodeData, &params);
    if (params.numOfRangeDropped != 0)
      throw CuptiError("the range profiler dropped its only range");
  }

 private:
  const Cupti& cupti_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  bool in_pass_ = false;
  bool in_range_ = false;
};

std::size_t num_ranges(const Cupti& cupti, const std::vector<std::uint8_t>& counter_data) {
  CUpti_RangeProfiler_GetCounterDataInfo_Params params{
      .structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE,
      .pCounterDataImage = counter_data.data(),
      .counterDataImageSize = counter_data.size()};
  GAUNTLET_CUPTI(cupti, cuptiRangeProfilerGetCounterDataInfo, &params);
  return params.numTotalRanges;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

class CudaProfiler : public Profiler {
 public:
  /// Throws CuptiError where counters cannot be had.
  explicit CudaProfiler(std::unique_ptr<Cupti> cupti)
      : cupti_(std::move(cupti)),
        context_(current_context()),
        session_(*cupti_),
        chip_(chip_name(*cupti_)),
        availability_(counter_availability(*cupti_, context_)) {}

  Expected<std::map<std::string, double>> collect(
      const std::vector<std::string>& metrics, const std::function<void()>& work,
      const std::function<void()>& before_pass) override {
    std::vector<std::string> names = metrics;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.empty()) return std::map<std::string, double>{};
    try {
      if (const auto unknown = unknown_metrics(*cupti_, chip_, names, {}); !unknown.empty()) {
        return Error{.message = "CUPTI knows no such metric on " + chip_ + ": " + listed(unknown),
                     .kind = ErrorKind::wrong_use};
      }
      if (const auto barred = unknown_metrics(*cupti_, chip_, names, availability_);
          !barred.empty()) {
        return Error{chip_ + " has these counters, but the driver does not offer them here: " +
                     listed(barred)};
      }
      return measure(names, work, before_pass);
    } catch (const CuptiError& error) {
      return Error{std::string("GPU counters could not be read: ") + error.what()};
    }
  }

 private:
  std::map<std::string, double> measure(const std::vector<std::string>& names,
                                        const std::function<void()>& work,
                                        const std::function<void()>& before_pass) {
    MetricPlanner planner(*cupti_, chip_, availability_);
    std::vector<const char*> metrics;
    for (const std::string& name : names) metrics.push_back(name.c_str());
    if (!planner.add(metrics))
      throw CuptiError("CUPTI knows each of the metrics but not all together");
    std::vector<std::uint8_t> config_image = planner.config_image();
    const std::size_t num_passes = planner.num_passes(config_image);

    std::vector<std::uint8_t> counter_data;
    RangeProfiler ranges(*cupti_, context_);
    ranges.configure(config_image, metrics, counter_data);
    for (std::size_t pass = 0;; ++pass) {
      if (pass == 2 * num_passes + 2) {
        throw CuptiError("the range profiler asked for more than the " +
                         std::to_string(num_passes) + " passes it had planned");
      }
      if (before_pass) {
        before_pass();
        cuda_check(cudaDeviceSynchronize());
      }
      if (ranges.run_pass(work) == RangeProfiler::Passes::done) break;
    }
    ranges.decode();
    if (const std::size_t found = num_ranges(*cupti_, counter_data); found != 1) {
      throw CuptiError("the counter data holds " + std::to_string(found) + " ranges instead of 1");
    }

    const std::vector<double> measured = planner.evaluate(counter_data, metrics);
    std::map<std::string, double> values;
    for (std::size_t i = 0; i < names.size(); ++i) {
      // A ratio over nothing (sectors per request without a request) has no value.
      if (std::isfinite(measured[i])) values[names[i]] = measured[i];
    }
    return values;
  }

  std::unique_ptr<Cupti> cupti_;
  CUcontext context_;
  ProfilerSession session_;
  std::string chip_;
  CounterAvailability availability_;
};

}  // namespace

Expected<std::unique_ptr<Profiler>> make_cuda_profiler() {
  if (const std::string reason = no_gpu_reason(); !reason.empty()) {
    return Error{"GPU counters need a GPU: " + reason};
  }
  auto cupti = Cupti::open();
  if (!cupti) return cupti.error();
  try {
    return std::unique_ptr<Profiler>(std::make_unique<CudaProfiler>(std::move(*cupti)));
  } catch (const CuptiError& error) {
    return Error{std::string("GPU counters are not available: ") + error.what()};
  }
}

Expected<std::vector<std::string>> unknown_gpu_metrics(const std::string& chip,
                                                       const std::vector<std::string>& metrics) {
  const auto cupti = Cupti::open();
  if (!cupti) return cupti.error();
  try {
    return unknown_metrics(**cupti, chip, metrics, {});
  } catch (const CuptiError& error) {
    return Error{"metrics of chip \"" + chip + "\" cannot be checked: " + error.what()};
  }
}

}  // namespace gauntlet::lab::inline profile
