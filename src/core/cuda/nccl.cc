#include "core/cuda/nccl.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/cuda/check.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace gauntlet {
namespace {

/// NcclFunctions as the header declares them, found in the library at run time.
struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) init_rank = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
};

template <class F>
bool find_function(const DynamicLibrary& library, const char* name, F*& function, Error& missing) {
  const auto found = library.symbol<F>(name);
  if (found) {
    function = *found;
  } else {
    missing = found.error();
  }
  return static_cast<bool>(found);
}

Expected<NcclFunctions> nccl_functions(const DynamicLibrary& library) {
  NcclFunctions f;
  Error missing;
  const bool complete = find_function(library, "ncclGetVersion", f.get_version, missing) &&
                        find_function(library, "ncclGetUniqueId", f.get_unique_id, missing) &&
                        find_function(library, "ncclCommInitRank", f.init_rank, missing) &&
                        find_function(library, "ncclCommDestroy", f.destroy, missing) &&
                        find_function(library, "ncclCommAbort", f.abort, missing) &&
                        find_function(library, "ncclCommGetAsyncError", f.async_error, missing) &&
                        find_function(library, "ncclGetErrorString", f.error_string, missing) &&
                        find_function(library, "ncclAllReduce", f.all_reduce, missing) &&
                        find_function(library, "ncclAllGather", f.all_gather, missing) &&
                        find_function(library, "ncclBroadcast", f.broadcast, missing);
  if (!complete) return missing;
  return f;
}

/// A GPU of a host, told apart from every other.
struct Place {
  char gpu[16] = {};
};

Place own_place() {
  Place place;
  int device = 0;
  cudaDeviceProp properties{};
  cuda_check(cudaGetDevice(&device));
  cuda_check(cudaGetDeviceProperties(&properties, device));
  std::memcpy(place.gpu, properties.uuid.bytes, sizeof(place.gpu));
  return place;
}

/// Each rank has a GPU of its own. All ranks say the same.
Expected<void> check_places(ranks::Group& group) {
  const Place own = own_place();
  std::vector<Place> all(static_cast<std::size_t>(group.size()));
  const auto told =
      group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  if (!told) return told.error();
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (std::size_t before = 0; before < r; ++before) {
      if (std::memcmp(all[r].gpu, all[before].gpu, sizeof(own.gpu)) != 0) continue;
      return Error{
          fmt::format("NCCL with {0} ranks needs {0} GPUs: ranks {1} and {2} have the same",
                      group.size(), before, r)};
    }
  }
  return {};
}

}  // namespace

struct NcclRanks::State {
  NcclFunctions call;
  ncclComm_t comm = nullptr;
  int rank = 0;
  int size = 1;

  void check_result(ncclResult_t result,
                    std::source_location where = std::source_location::current()) const {
    if (result != ncclSuccess) fail(std::string("NCCL: ") + call.error_string(result), where);
  }
};

NcclRanks::NcclRanks() : state_(std::make_unique<State>()) {}

NcclRanks::~NcclRanks() {
  if (state_->comm != nullptr) state_->call.destroy(state_->comm);
}

Expected<std::unique_ptr<NcclRanks>> NcclRanks::join(ranks::Group& group,
                                                     const LibrarySearch& search) {
  const auto library = DynamicLibrary::open(search);
  if (!library) return library.error();
  const auto functions = nccl_functions(*library);
  if (!functions) return functions.error();
  if (const auto apart = check_places(group); !apart) return apart.error();
  // It has threads of its own.
  library->keep_loaded();
  std::unique_ptr<NcclRanks> ranks(new NcclRanks());
  State& state = *ranks->state_;
  state.call = *functions;
  state.rank = group.rank();
  state.size = group.size();
  ncclUniqueId id{};
  ncclResult_t result = ncclSuccess;
  if (state.rank == 0) result = state.call.get_unique_id(&id);
  const auto told = group.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  if (!told) return told.error();
  if (result == ncclSuccess) {
    result = state.call.init_rank(&state.comm, state.size, id, state.rank);
  }
  if (result != ncclSuccess) {
    state.comm = nullptr;
    return Error{fmt::format("NCCL could not join {} ranks: {}", state.size,
                             state.call.error_string(result))};
  }
  return ranks;
}

int NcclRanks::rank() const { return state_->rank; }
int NcclRanks::size() const { return state_->size; }

std::string NcclRanks::version() const {
  int version = 0;
  state_->check_result(state_->call.get_version(&version));
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void NcclRanks::all_sum(float* numbers, std::int64_t count, CUstream_st* stream) {
  state_->check_result(state_->call.all_reduce(numbers, numbers, static_cast<std::size_t>(count),
                                               ncclFloat32, ncclSum, state_->comm, stream));
}

void NcclRanks::all_gather(const float* own, std::int64_t count, float* all, CUstream_st* stream) {
  state_->check_result(state_->call.all_gather(own, all, static_cast<std::size_t>(count),
                                               ncclFloat32, state_->comm, stream));
}

void NcclRanks::broadcast(void* bytes, std::size_t count, int root, CUstream_st* stream) {
  state_->check_result(
      state_->call.broadcast(bytes, bytes, count, ncclUint8, root, state_->comm, stream));
}

std::string NcclRanks::failure() const {
  if (state_->comm == nullptr) return "the ranks were given up";
  ncclResult_t result = ncclSuccess;
  state_->check_result(state_->call.async_error(state_->comm, &result));
  return result == ncclSuccess || result == ncclInProgress ? "" : state_->call.error_string(result);
}

void NcclRanks::abort() {
  if (state_->comm != nullptr) state_->call.abort(std::exchange(state_->comm, nullptr));
}

}  // namespace gauntlet

#else

namespace gauntlet {

struct NcclRanks::State {};

NcclRanks::NcclRanks() = default;
NcclRanks::~NcclRanks() = default;

Expected<std::unique_ptr<NcclRanks>> NcclRanks::join(ranks::Group&, const LibrarySearch&) {
  return Error{"this gauntlet was built without NCCL's header"};
}

int NcclRanks::rank() const { return 0; }
int NcclRanks::size() const { return 1; }
std::string NcclRanks::version() const { return ""; }
void NcclRanks::all_sum(float*, std::int64_t, CUstream_st*) {}
void NcclRanks::all_gather(const float*, std::int64_t, float*, CUstream_st*) {}
void NcclRanks::broadcast(void*, std::size_t, int, CUstream_st*) {}
std::string NcclRanks::failure() const { return ""; }
void NcclRanks::abort() {}

}  // namespace gauntlet
#endif

namespace gauntlet {

LibrarySearch nccl_search() {
  LibrarySearch search = {.names = {"libnccl.so.2"}, .folders = cuda_library_folders()};
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) search.folders.push_back(executable.parent_path());
  return search;
}

Expected<std::unique_ptr<NcclRanks>> NcclRanks::join(ranks::Group& group) {
  return join(group, nccl_search());
}

}  // namespace gauntlet
