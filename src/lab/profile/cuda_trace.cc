// Which kernels, copies and named ranges ran when, on which stream: a trace by CUPTI's activity
// records.
#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/cuda/check.h"
#include "lab/profile/cuda_cupti.h"
#include "lab/profile/profiler.h"

namespace gauntlet::lab::inline profile {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::int64_t kHostProcess = 0;  // GPUs follow as 1 + their index

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MARKER};

std::string demangled(const char* name) {
  if (name == nullptr) return "unnamed";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : name;
}

std::string triple(std::int64_t x, std::int64_t y, std::int64_t z) {
  return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z);
}

const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy device to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "copy host to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "copy device to peer";
    default:
      return "copy";
  }
}

/// The part that all records of work on a stream have in common.
template <class Record>
TraceEvent stream_event(const Record& record, std::string name, std::string category) {
  const auto start = static_cast<std::int64_t>(record.start);
  return {.name = std::move(name),
          .category = std::move(category),
          .row = {.process = 1 + std::int64_t{record.deviceId},
                  .thread = record.streamId,
                  .process_name = "GPU " + std::to_string(record.deviceId),
                  .thread_name = "stream " + std::to_string(record.streamId)},
          .start_ns = start,
          .duration_ns = static_cast<std::int64_t>(record.end) - start,
          .args = {{"correlation", std::int64_t{record.correlationId}}}};
}

template <class Record>
TraceEvent transfer_event(const Record& record, const char* name, const char* category) {
  TraceEvent event = stream_event(record, name, category);
  event.args["bytes"] = static_cast<std::int64_t>(record.bytes);
  if (record.end > record.start) {  // bytes per nanosecond are GB/s
    event.args["GB/s"] =
        static_cast<double>(record.bytes) / static_cast<double>(record.end - record.start);
  }
  return event;
}

TraceEvent kernel_event(const CUpti_ActivityKernel10& kernel) {
  TraceEvent event = stream_event(kernel, demangled(kernel.name), "kernel");
  auto& args = event.args;
  args["grid"] = triple(kernel.gridX, kernel.gridY, kernel.gridZ);
  args["block"] = triple(kernel.blockX, kernel.blockY, kernel.blockZ);
  if (kernel.clusterX > 0) {
    args["cluster"] = triple(kernel.clusterX, kernel.clusterY, kernel.clusterZ);
  }
  args["registers per thread"] = std::int64_t{kernel.registersPerThread};
  args["static shared bytes"] = std::int64_t{kernel.staticSharedMemory};
  args["dynamic shared bytes"] = std::int64_t{kernel.dynamicSharedMemory};
  args["local bytes per thread"] = std::int64_t{kernel.localMemoryPerThread};
  if (kernel.graphNodeId != 0) args["graph node"] = static_cast<std::int64_t>(kernel.graphNodeId);
  return event;
}

/// Turns records into events as CUPTI hands buffers over, on a thread of its own.
class Recorder {
 public:
  explicit Recorder(const Cupti& cupti) : cupti_(cupti) {}

  void add_buffer(std::uint8_t* buffer, std::size_t valid_bytes) {
    const std::scoped_lock lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (GAUNTLET_TRY_CUPTI(cupti_, cuptiActivityGetNextRecord, buffer, valid_bytes, &record) ==
           CUPTI_SUCCESS) {
      add(*record);
    }
  }

  void add_host_range(const std::string& name, std::uint64_t start_ns, std::uint64_t end_ns) {
    const std::scoped_lock lock(mutex_);
    events_.push_back({.name = name,
                       .category = "host",
                       .row = host_row(0, "profiled work"),
                       .start_ns = static_cast<std::int64_t>(start_ns),
                       .duration_ns = static_cast<std::int64_t>(end_ns - start_ns)});
  }

  std::vector<TraceEvent> take() {
    const std::scoped_lock lock(mutex_);
    return std::move(events_);
  }

 private:
  void add(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        events_.push_back(kernel_event(reinterpret_cast<const CUpti_ActivityKernel10&>(record)));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
        events_.push_back(transfer_event(copy, copy_name(copy.copyKind), "copy"));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record);
        events_.push_back(transfer_event(copy, copy_name(copy.copyKind), "copy"));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET:
        events_.push_back(transfer_event(reinterpret_cast<const CUpti_ActivityMemset4&>(record),
                                         "set memory", "set"));
        break;
      case CUPTI_ACTIVITY_KIND_MARKER:
        add_marker(reinterpret_cast<const CUpti_ActivityMarker2&>(record));
        break;
      default:
        break;
    }
  }

  // A range is two records with one id, and only the first has a name.
  void add_marker(const CUpti_ActivityMarker2& marker) {
    const auto time_ns = static_cast<std::int64_t>(marker.timestamp);
    if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) != 0) {
      const auto open = open_ranges_.find(marker.id);
      if (open == open_ranges_.end()) return;  // it began before the trace
      TraceEvent event = std::move(open->second);
      open_ranges_.erase(open);
      event.duration_ns = time_ns - event.start_ns;
      events_.push_back(std::move(event));
      return;
    }
    const std::int64_t thread =
        marker.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ? marker.objectId.pt.threadId : 0;
    TraceEvent event{.name = marker.name != nullptr ? marker.name : "unnamed",
                     .category = "nvtx",
                     .row = host_row(thread, "NVTX, thread " + std::to_string(thread)),
                     .start_ns = time_ns};
    if (marker.domain != nullptr) event.args["domain"] = std::string(marker.domain);
    if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_START) != 0) {
      open_ranges_[marker.id] = std::move(event);
    } else if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS) != 0) {
      events_.push_back(std::move(event));
    }
  }

  static TraceRow host_row(std::int64_t thread, std::string name) {
    return {.process = kHostProcess,
            .thread = thread,
            .process_name = "host",
            .thread_name = std::move(name)};
  }

  const Cupti& cupti_;
  std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::map<std::uint32_t, TraceEvent> open_ranges_;
};

/// CUPTI's buffer callbacks carry no user pointer, so that the one recorder at work has to be found
/// from here.
class ActiveRecorder {
 public:
  explicit ActiveRecorder(Recorder& recorder) {
    const std::scoped_lock lock(mutex());
    check(slot() == nullptr, "a GPU trace is already being recorded in this process");
    slot() = &recorder;
  }
  ActiveRecorder(const ActiveRecorder&) = delete;
  ActiveRecorder& operator=(const ActiveRecorder&) = delete;
  ~ActiveRecorder() {
    const std::scoped_lock lock(mutex());
    slot() = nullptr;
  }

  static void CUPTIAPI request(std::uint8_t** buffer, std::size_t* bytes,
                               std::size_t* max_records) {
    *buffer =
        static_cast<std::uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, kBufferBytes));
    *bytes = *buffer != nullptr ? kBufferBytes : 0;
    *max_records = 0;  // as many as fit
  }

  static void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                std::size_t valid_bytes) {
    {
      const std::scoped_lock lock(mutex());
      // Buffers may still arrive after the trace has ended.
      if (slot() != nullptr) slot()->add_buffer(buffer, valid_bytes);
    }
    std::free(buffer);
  }

 private:
  static Recorder*& slot() {
    static Recorder* recorder = nullptr;
    return recorder;
  }
  static std::mutex& mutex() {
    static std::mutex guard;
    return guard;
  }
};

/// Records are produced while this lives.
class Recording {
 public:
  explicit Recording(const Cupti& cupti) : cupti_(cupti) {
    GAUNTLET_CUPTI(cupti_, cuptiActivityRegisterCallbacks, &ActiveRecorder::request,
                   &ActiveRecorder::complete);
    for (const CUpti_ActivityKind kind : kKinds) GAUNTLET_CUPTI(cupti_, cuptiActivityEnable, kind);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    for (const CUpti_ActivityKind kind : kKinds) {
      quietly([&] { GAUNTLET_CUPTI(cupti_, cuptiActivityDisable, kind); });
    }
  }

  std::uint64_t now_ns() const {
    std::uint64_t time_ns = 0;
    GAUNTLET_CUPTI(cupti_, cuptiGetTimestamp, &time_ns);
    return time_ns;
  }

  /// Hands all buffers over, full or not; returns how many records found no buffer.
  std::int64_t flush() const {
    GAUNTLET_CUPTI(cupti_, cuptiActivityFlushAll, std::uint32_t{CUPTI_ACTIVITY_FLAG_FLUSH_FORCED});
    std::size_t dropped = 0;
    GAUNTLET_CUPTI(cupti_, cuptiActivityGetNumDroppedRecords, nullptr, 0, &dropped);
    return static_cast<std::int64_t>(dropped);
  }

 private:
  const Cupti& cupti_;
};

/// NVTX asks this variable once, at its first call in the process, which library receives its
/// ranges.
void route_nvtx_to(const Cupti& cupti) { setenv("NVTX_INJECTION64_PATH", cupti.path().c_str(), 0); }

GpuTrace record(const Cupti& cupti, const std::function<void()>& work) {
  route_nvtx_to(cupti);
  Recorder recorder(cupti);
  const ActiveRecorder active(recorder);
  const Recording recording(cupti);

  const std::uint64_t start_ns = recording.now_ns();
  work();
  cuda_check(cudaDeviceSynchronize());
  recorder.add_host_range("work", start_ns, recording.now_ns());
  const std::int64_t dropped = recording.flush();
  return {.events = recorder.take(), .dropped_records = dropped};
}

}  // namespace

Expected<GpuTrace> record_gpu(const std::function<void()>& work) {
  if (const std::string reason = no_gpu_reason(); !reason.empty()) {
    return Error{"a GPU trace needs a GPU: " + reason};
  }
  const auto cupti = Cupti::open();
  if (!cupti) return cupti.error();
  try {
    return record(**cupti, work);
  } catch (const CuptiError& error) {
    return Error{std::string("the GPU could not be traced: ") + error.what()};
  }
}

}  // namespace gauntlet::lab::inline profile
