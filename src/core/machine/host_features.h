// Can this host do what a target needs? Each probe holds no error where it can; otherwise the error
// says what exactly is missing and what to do.
#pragma once
#include <filesystem>
#include <string>

#include "core/expected.h"
#include "core/machine/machine.h"
#include "core/os/dynamic_library.h"
#include "core/os/system_files.h"

namespace gauntlet {

/// Asks the kernel for a ring.
Expected<void> probe_io_uring(const SystemFiles& files);
/// The sentence for an io_uring_setup() that failed with errno `error`.
std::string io_uring_refusal(int error, const SystemFiles& files);

/// Writes a block past the page cache into a new file of `folder`.
Expected<void> probe_direct_io(const std::filesystem::path& folder);

/// Transparent huge pages on request at least, or some reserved.
Expected<void> probe_huge_pages(const SystemFiles& files);

/// An InfiniBand or RoCE device.
Expected<void> probe_rdma(const SystemFiles& files);

/// A Grace CPU and a GPU that share memory coherently over NVLink-C2C.
Expected<void> probe_grace(const CpuInfo& cpu, const Expected<int>& gpu_reads_host_page_tables);

/// NVLink SHARP: collectives in the switch.
Expected<void> probe_nvls(const Expected<int>& gpu_multicast);

/// Whether a library can be opened; `fix` says how to get it.
Expected<void> probe_library(const LibrarySearch& search, const std::string& fix);

/// The chosen word of a kernel setting such as "always [madvise] never"; empty where there is none.
std::string chosen_word(const std::string& setting);

}  // namespace gauntlet
