#include "core/storage/direct_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/os/dynamic_library.h"
#if __has_include(<cufile.h>)
#include <cufile.h>
#define GAUNTLET_HAVE_CUFILE 1
#endif

namespace gauntlet {

#if GAUNTLET_HAVE_CUFILE

Expected<void> DirectFile::available(const SystemFiles& files) {
  if (!files.list("/proc/driver/nvidia-fs").empty()) return {};
  return Error{
      "the kernel module nvidia-fs is not loaded, without which cuFile reads into a buffer of the "
      "host: apt-get install nvidia-fs-dkms of NVIDIA's repository, and modprobe nvidia-fs"};
}

namespace {

/// CuFileFunctions as the header declares them, found in the library.
struct CuFileFunctions {
  decltype(&cuFileDriverOpen) driver_open = nullptr;
  decltype(&cuFileSetParameterBool) set_parameter = nullptr;
  decltype(&cuFileHandleRegister) handle_register = nullptr;
  decltype(&cuFileHandleDeregister) handle_deregister = nullptr;
  decltype(&cuFileBufRegister) buffer_register = nullptr;
  decltype(&cuFileBufDeregister) buffer_deregister = nullptr;
  decltype(&cuFileRead) read = nullptr;
};

template <class F>
bool find_cufile(const DynamicLibrary& library, const char* name, F*& function, Error& missing) {
  const auto found = library.symbol<F>(name);
  if (found) {
    function = *found;
  } else {
    missing = found.error();
  }
  return static_cast<bool>(found);
}

Expected<CuFileFunctions> cufile_functions_of(const DynamicLibrary& library) {
  CuFileFunctions f;
  Error missing;
  const bool complete =
      find_cufile(library, "cuFileDriverOpen", f.driver_open, missing) &&
      find_cufile(library, "cuFileSetParameterBool", f.set_parameter, missing) &&
      find_cufile(library, "cuFileHandleRegister", f.handle_register, missing) &&
      find_cufile(library, "cuFileHandleDeregister", f.handle_deregister, missing) &&
      find_cufile(library, "cuFileBufRegister", f.buffer_register, missing) &&
      find_cufile(library, "cuFileBufDeregister", f.buffer_deregister, missing) &&
      find_cufile(library, "cuFileRead", f.read, missing);
  if (!complete) return missing;
  return f;
}

Expected<void> cufile_done(const CUfileError_t& status, const char* what) {
  if (status.err == CU_FILE_SUCCESS) return {};
  return Error{fmt::format("{}: cuFile's error {}, the driver's {}", what,
                           static_cast<int>(status.err), static_cast<int>(status.cu_err))};
}

}  // namespace

struct DirectFile::State {
  CuFileFunctions cufile;
  CUfileHandle_t handle = nullptr;
};

Expected<std::unique_ptr<DirectFile>> DirectFile::open(int file) {
  auto library =
      DynamicLibrary::open({.names = {"libcufile.so.0"}, .folders = cuda_library_folders()});
  if (!library) return library.error();
  // It has threads of its own, which end with the process.
  library->keep_loaded();
  const auto functions = cufile_functions_of(*library);
  if (!functions) return functions.error();
  // Parameters are set before the driver is opened.
  auto status =
      cufile_done(functions->set_parameter(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false),
                  "the compatibility mode cannot be forbidden");
  if (!status) return status.error();
  status =
      cufile_done(functions->driver_open(), "the driver of GPUDirect Storage cannot be opened");
  if (!status) return status.error();
  auto state = std::make_unique<State>();
  state->cufile = *functions;
  CUfileDescr_t description;
  std::memset(&description, 0, sizeof(description));
  description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = file;
  status = cufile_done(
      functions->handle_register(&state->handle, &description),
      "no GPUDirect Storage from this file system: set TMPDIR to one on NVMe (ext4 with "
      "data=ordered, or xfs)");
  if (!status) return status.error();
  return std::unique_ptr<DirectFile>(new DirectFile(std::move(state)));
}

DirectFile::DirectFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
DirectFile::~DirectFile() { state_->cufile.handle_deregister(state_->handle); }

Expected<void> DirectFile::pin(void* memory, std::int64_t bytes) {
  return cufile_done(state_->cufile.buffer_register(memory, static_cast<std::size_t>(bytes), 0),
                     "the GPU's memory cannot be shown to the disk");
}

void DirectFile::unpin(void* memory) noexcept { state_->cufile.buffer_deregister(memory); }

Expected<void> DirectFile::read(const DirectRead& read) {
  for (std::int64_t have = 0; have < read.bytes;) {
    const ssize_t count = state_->cufile.read(state_->handle, read.memory,
                                              static_cast<std::size_t>(read.bytes - have),
                                              read.offset + have, read.at + have);
    if (count <= 0) {
      return Error{count == -1 ? fmt::format("cuFile cannot read: {}", std::strerror(errno))
                               : fmt::format("cuFile cannot read: its error {}", -count)};
    }
    have += count;
  }
  return {};
}

#else

namespace {

Error without_cufile() {
  return Error{
      "this build is without cuFile, because it found no cufile.h: apt-get install "
      "libcufile-dev-13-0 of NVIDIA's repository, and build again"};
}

}  // namespace

struct DirectFile::State {};

Expected<void> DirectFile::available(const SystemFiles&) { return without_cufile(); }
Expected<std::unique_ptr<DirectFile>> DirectFile::open(int) { return without_cufile(); }
DirectFile::DirectFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
DirectFile::~DirectFile() = default;
Expected<void> DirectFile::pin(void*, std::int64_t) { return without_cufile(); }
void DirectFile::unpin(void*) noexcept {}
Expected<void> DirectFile::read(const DirectRead&) { return without_cufile(); }

#endif

}  // namespace gauntlet
