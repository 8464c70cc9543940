#include "core/machine/host_features.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace gauntlet {
namespace {

constexpr std::size_t kBlockBytes = 4096;

/// A file that is gone with the object; only its descriptor is shared.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder)
      : path_((folder / "gauntlet_direct_XXXXXX").string()) {
    const int made = ::mkstemp(path_.data());
    made_ = made >= 0;
    error_ = errno;
    if (made_) ::close(made);
  }
  ~TemporaryFile() {
    if (made_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool made() const { return made_; }
  int error() const { return error_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_ = false;
  int error_ = 0;
};

/// 0, or the errno of the refusal.
int write_directly(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  if (file < 0) return errno;
  alignas(kBlockBytes) static const char kBlock[kBlockBytes] = {};
  const ssize_t written = ::write(file, kBlock, kBlockBytes);
  const int error = written == static_cast<ssize_t>(kBlockBytes) ? 0 : written < 0 ? errno : EIO;
  ::close(file);
  return error;
}

}  // namespace

std::string io_uring_refusal(int error, const SystemFiles& files) {
  switch (error) {
    case ENOSYS:
      return "this kernel has no io_uring: use Linux 5.1 or later";
    case EPERM:
    case EACCES: {
      const auto disabled = files.number("/proc/sys/kernel/io_uring_disabled");
      if (disabled.value_or(0) > 0) {
        return fmt::format("kernel.io_uring_disabled is {}: sysctl -w kernel.io_uring_disabled=0",
                           *disabled);
      }
      return "io_uring_setup is forbidden to this process: in a container, allow it in the seccomp "
             "profile (docker run --security-opt seccomp=unconfined)";
    }
    case ENOMEM:
      return "no memory may be locked for a ring: raise ulimit -l";
    default:
      return fmt::format("io_uring_setup failed: {}", std::strerror(error));
  }
}

Expected<void> probe_io_uring(const SystemFiles& files) {
  io_uring_params params{};
  const long ring = ::syscall(SYS_io_uring_setup, 4, &params);
  if (ring < 0) return Error{io_uring_refusal(errno, files)};
  ::close(static_cast<int>(ring));
  return {};
}

Expected<void> probe_direct_io(const std::filesystem::path& folder) {
  constexpr const char* kFix = "set TMPDIR to a folder on a disk (ext4, xfs)";
  struct statfs system{};
  if (::statfs(folder.c_str(), &system) == 0 &&
      (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)) {
    return Error{fmt::format("{} is in memory, not on a disk: {}", folder.string(), kFix)};
  }
  const TemporaryFile file(folder);
  if (!file.made()) {
    return Error{fmt::format("no file can be made in {} ({}): {}", folder.string(),
                             std::strerror(file.error()), kFix)};
  }
  if (const int error = write_directly(file.path()); error != 0) {
    return Error{fmt::format("the file system of {} refuses it ({}): {}", folder.string(),
                             std::strerror(error), kFix)};
  }
  return {};
}

std::string chosen_word(const std::string& setting) {
  const std::size_t open = setting.find('['), close = setting.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return setting.substr(open + 1, close - open - 1);
}

Expected<void> probe_huge_pages(const SystemFiles& files) {
  const std::string setting = "/sys/kernel/mm/transparent_hugepage/enabled";
  const std::string enabled = chosen_word(files.text(setting).value_or(""));
  if (enabled == "always" || enabled == "madvise") return {};
  const auto reserved =
      leading_number(files.field("/proc/meminfo", "HugePages_Free").value_or("")).value_or(0);
  if (reserved > 0) return {};
  return Error{fmt::format(
      "transparent huge pages are {} and none are reserved: echo madvise > {}, or sysctl -w "
      "vm.nr_hugepages=512",
      enabled.empty() ? "not in this kernel" : "set to " + enabled, setting)};
}

Expected<void> probe_rdma(const SystemFiles& files) {
  if (!files.list("/sys/class/infiniband").empty()) return {};
  return Error{
      "/sys/class/infiniband shows no device: run on a machine with an InfiniBand or RoCE adapter "
      "whose driver is loaded (in a container: docker run --device /dev/infiniband)"};
}

Expected<void> probe_grace(const CpuInfo& cpu, const Expected<int>& gpu_reads_host_page_tables) {
  // Others build CPUs of the same cores; the GPU that reads their page tables is what only Grace
  // has.
  if (cpu.model != "ARM Neoverse V2") {
    return Error{fmt::format("this CPU is {}, not Grace: run on a GH200 or GB200",
                             cpu.model.empty() ? "unknown" : cpu.model)};
  }
  if (!gpu_reads_host_page_tables) return gpu_reads_host_page_tables.error();
  if (*gpu_reads_host_page_tables == 0) {
    return Error{
        "the GPU does not share the CPU's page tables, so it is not linked by NVLink-C2C: run on a "
        "GH200 or GB200"};
  }
  return {};
}

Expected<void> probe_nvls(const Expected<int>& gpu_multicast) {
  if (!gpu_multicast) return gpu_multicast.error();
  if (*gpu_multicast != 0) return {};
  return Error{
      "the driver offers no multicast on this GPU: run on Hopper or later behind an NVSwitch, with "
      "nvidia-fabricmanager started"};
}

Expected<void> probe_library(const LibrarySearch& search, const std::string& fix) {
  const auto library = DynamicLibrary::open(search);
  if (library) return {};
  return Error{fmt::format("{}; {}", library.error().message, fix)};
}

}  // namespace gauntlet
