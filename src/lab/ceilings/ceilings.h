// Ceilings: what this machine can do at most, measured as the best of several methods and kept per
// machine key; and where a measured time sits under them.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/machine/machine.h"
#include "lab/author/knobs.h"
#include "lab/author/pair.h"

namespace gauntlet::lab::inline ceilings {

struct CeilingTry {
  std::string method;
  double value = 0;
  bool operator==(const CeilingTry&) const = default;
};

struct Ceiling {
  double value = 0;
  std::string unit;    // GB/s or GFLOP/s
  std::string method;  // the best of `tries`
  /// The truth may be above `value` by this share. How far the best method's samples were apart:
  /// its median time over its best, less one. Of a disk: how far the second best sample is above
  /// `value`, which is a median there.
  double spread = 0;
  std::vector<CeilingTry> tries;
  bool operator==(const Ceiling&) const = default;
};

/// Caches of all cores that are used together; 0: not known.
struct CacheSizes {
  double l1_bytes = 0;
  double l2_bytes = 0;
  double last_bytes = 0;  // a GPU's L2
  bool operator==(const CacheSizes&) const = default;
};

/// GB/s: dram_read, dram_write, dram_copy (read + write counted), l1_read, l2_read; CPU: llc_read,
/// disk_read (of the folder for temporary files, what the best method gives in the median; no _1t
/// twin; a GPU's have it once a target has run there that reads a disk); GPU: shared_read,
/// h2d_pinned, d2h_pinned, h2d_pageable, d2h_pageable. GFLOP/s: fma_f64, fma_f32, fma_f16,
/// fma_bf16, fma_i32, fma_i8 (vector units; a CPU's fma_bf16 and fma_i8 are its dot-product
/// instructions); GPU: matrix_f64, matrix_tf32, matrix_f16, matrix_bf16, matrix_f8e4m3, matrix_i8
/// (tensor cores). A CPU's are those of all cores this process may use; each has a twin of one
/// pinned thread, with _1t at its end (dram_read_1t, fma_f32_1t). What a machine lacks is absent.
struct Ceilings {
  std::string machine_key;
  BackendKind backend = BackendKind::cpu;
  std::int64_t measured_at = 0;  // seconds since the epoch
  CacheSizes caches;
  std::map<std::string, Ceiling> values;

  double get(const std::string& name) const;  // 0 when absent
  bool operator==(const Ceilings&) const = default;
};

nlohmann::json to_json(const Ceilings& ceilings);
Expected<Ceilings> ceilings_from_json(const nlohmann::json& json);

/// Measures in this process (run it in a worker). A GPU's need a device. `progress` gets each
/// ceiling's name.
Expected<Ceilings> measure_ceilings(BackendKind backend, const MachineInfo& machine,
                                    const std::function<void(const std::string&)>& progress = {});

/// disk_read alone, of this moment: neighbours, the host's caches and a disk's own housekeeping
/// change what it gives from minute to minute.
Ceilings measure_disk_ceiling(const MachineInfo& machine);

/// The file of a machine key below the user's cache folder ($XDG_CACHE_HOME or ~/.cache)/gauntlet/.
std::string ceilings_path(const std::string& machine_key);
/// Nothing when there is no file, or none that this version can read.
std::optional<Ceilings> load_ceilings(const std::string& machine_key);
Expected<void> save_ceilings(const Ceilings& ceilings);

/// Of each ceiling the higher one: measured again, a busy machine may do better. A disk's grants
/// what either saw.
Ceilings best_of(const Ceilings& a, const Ceilings& b);

/// How much of a CPU the placed side uses. A GPU has one set of ceilings and ignores it.
enum class Threads { one, all };

/// Where a time sits under the ceilings.
struct RooflinePoint {
  double floor_ns = 0;  // the time the ceilings allow
  double percent = 0;   // floor over measured
  std::string
      bound_by;  // "memory", "disk", "compute"; empty when the ceilings lack what the cost needs
  double intensity = 0;  // FLOPs per byte; 0 when no bytes move
};

/// Bytes that are both read and written move at copy bandwidth, the rest at read or write
/// bandwidth; over a host link reads are h2d, writes d2h, and the two directions overlap. A matrix
/// product on a CPU without matrix units is placed under its vector units.
RooflinePoint place(const Cost& cost, double ns, const Ceilings& ceilings, Threads threads);

}  // namespace gauntlet::lab::inline ceilings
