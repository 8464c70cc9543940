// Finds libcupti, turns its results into sentences, and wraps the host half of its profiler.
#include "lab/profile/cuda_cupti.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

namespace gauntlet::lab::inline profile {
namespace {

constexpr const char* kLibrary = "libcupti.so.13";

std::string folder_of_executable() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return {};
  const std::string file(path, static_cast<std::size_t>(length));
  return file.substr(0, file.rfind('/'));
}

std::vector<std::string> places() {
  std::vector<std::string> folders;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') {
    folders.push_back(std::string(home) + "/lib64");
    folders.push_back(std::string(home) + "/extras/CUPTI/lib64");
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  folders.emplace_back("/usr/local/cuda/extras/CUPTI/lib64");
  if (std::string folder = folder_of_executable(); !folder.empty()) folders.push_back(folder);

  std::vector<std::string> files = {kLibrary};  // first whatever the loader itself knows
  for (const std::string& folder : folders) files.push_back(folder + "/" + kLibrary);
  return files;
}

/// The file a symbol was loaded from, which for a plain name only the loader knows.
std::string file_of(const void* address, const std::string& fallback) {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr)
    return fallback;
  return info.dli_fname;
}

}  // namespace

std::string no_gpu_reason() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return {};
  return cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status);
}

Expected<std::unique_ptr<Cupti>> Cupti::open() {
  std::string tried;
  for (const std::string& file : places()) {
    // CUPTI and NVTX keep pointers into the library, so that it must never be unloaded.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) {
      std::string path = file_of(dlsym(library, "cuptiGetResultString"), file);
      return std::unique_ptr<Cupti>(new Cupti(library, std::move(path)));
    }
    const char* reason = dlerror();
    tried += "\n  " + std::string(reason != nullptr ? reason : file.c_str());
  }
  return Error{std::string(kLibrary) +
               " not found: install the CUDA 13 toolkit's CUPTI, set CUDA_HOME, or put " +
               kLibrary +
               ", libnvperf_host.so and libnvperf_target.so beside this program; tried:" + tried};
}

void* Cupti::symbol(const char* name) const {
  void* address = dlsym(library_, name);
  if (address == nullptr)
    throw CuptiError(path_ + " has no " + name + "; CUDA 13.0 or later is needed");
  return address;
}

void Cupti::require(const char* name, CUptiResult result) const {
  if (result == CUPTI_SUCCESS) return;
  const char* result_name = nullptr;
  const char* words = nullptr;
  GAUNTLET_TRY_CUPTI(*this, cuptiGetResultString, result, &result_name);
  GAUNTLET_TRY_CUPTI(*this, cuptiGetErrorMessage, result, &words);
  std::string text = std::string(name) + " failed: " +
                     (result_name != nullptr ? result_name : std::to_string(result).c_str());
  if (words != nullptr) text += std::string(" (") + words + ")";
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) {
    text +=
        "; GPU counters are reserved to administrators here: run as root, or load the nvidia "
        "module with NVreg_RestrictProfilingToAdminUsers=0";
  }
  throw CuptiError(text);
}

MetricPlanner::MetricPlanner(const Cupti& cupti, const std::string& chip,
                             const CounterAvailability& availability)
    : cupti_(cupti) {
  CUpti_Profiler_Host_Initialize_Params params{
      .structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
      .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER,
      .pChipName = chip.c_str(),
      .pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data()};
  GAUNTLET_CUPTI(cupti_, cuptiProfilerHostInitialize, &params);
  host_ = params.pHostObject;
}

MetricPlanner::~MetricPlanner() {
  CUpti_Profiler_Host_Deinitialize_Params params{
      .structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE, .pHostObject = host_};
  quietly([&] { GAUNTLET_CUPTI(cupti_, cuptiProfilerHostDeinitialize, &params); });
}

bool MetricPlanner::add(const std::vector<const char*>& metrics) {
  CUpti_Profiler_Host_ConfigAddMetrics_Params params{
      .structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
      .pHostObject = host_,
      .ppMetricNames = const_cast<const char**>(metrics.data()),
      .numMetrics = metrics.size()};
  return GAUNTLET_TRY_CUPTI(cupti_, cuptiProfilerHostConfigAddMetrics, &params) == CUPTI_SUCCESS;
}

std::vector<std::uint8_t> MetricPlanner::config_image() const {
  CUpti_Profiler_Host_GetConfigImageSize_Params size{
      .structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE,
      .pHostObject = host_};
  GAUNTLET_CUPTI(cupti_, cuptiProfilerHostGetConfigImageSize, &size);
  std::vector<std::uint8_t> image(size.configImageSize);
  CUpti_Profiler_Host_GetConfigImage_Params params{
      .structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
      .pHostObject = host_,
      .configImageSize = image.size(),
      .pConfigImage = image.data()};
  GAUNTLET_CUPTI(cupti_, cuptiProfilerHostGetConfigImage, &params);
  return image;
}

std::size_t MetricPlanner::num_passes(std::vector<std::uint8_t>& config_image) const {
  CUpti_Profiler_Host_GetNumOfPasses_Params params{
      .structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE,
      .configImageSize = config_image.size(),
      .pConfigImage = config_image.data()};
  GAUNTLET_CUPTI(cupti_, cuptiProfilerHostGetNumOfPasses, &params);
  return params.numOfPasses;
}

std::vector<double> MetricPlanner::evaluate(const std::vector<std::uint8_t>& counter_data,
                                            const std::vector<const char*>& metrics) const {
  std::vector<double> values(metrics.size());
  CUpti_Profiler_Host_EvaluateToGpuValues_Params params{
      .structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE,
      .pHostObject = host_,
      .pCounterDataImage = counter_data.data(),
      .counterDataImageSize = counter_data.size(),
      .rangeIndex = 0,
      .ppMetricNames = const_cast<const char**>(metrics.data()),
      .numMetrics = metrics.size(),
      .pMetricValues = values.data()};
  GAUNTLET_CUPTI(cupti_, cuptiProfilerHostEvaluateToGpuValues, &params);
  return values;
}

std::vector<std::string> unknown_metrics(const Cupti& cupti, const std::string& chip,
                                         const std::vector<std::string>& metrics,
                                         const CounterAvailability& availability) {
  std::vector<std::string> unknown;
  for (const std::string& metric : metrics) {
    MetricPlanner planner(cupti, chip, availability);
    if (!planner.add({metric.c_str()})) unknown.push_back(metric);
  }
  return unknown;
}

}  // namespace gauntlet::lab::inline profile
