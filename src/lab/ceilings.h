// Ceilings: what this machine can do at most, measured as the best of several methods, and kept per machine key.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/machine.h"
#include "lab/knobs.h"
#include "lab/pair.h"

namespace gauntlet::lab {

struct CeilingTry {
  std::string method;
  double value = 0;
};

struct Ceiling {
  double value = 0;
  std::string unit;    // GB/s or GFLOP/s
  std::string method;  // the best of `tries`
  std::vector<CeilingTry> tries;
};

/// Names: dram_read, dram_write, dram_copy (read + write counted), l1_read, l2_read, llc_read (GB/s);
/// fma_f64, fma_f32, fma_f16, matrix_f64, matrix_tf32, matrix_f16, matrix_bf16, matrix_f8e4m3, matrix_i8 (GFLOP/s);
/// h2d_pinned, d2h_pinned, h2d_pageable, d2h_pageable, disk_read (GB/s). What a machine lacks is absent.
struct Ceilings {
  std::string machine_key;
  BackendKind backend = BackendKind::cpu;
  std::int64_t measured_at = 0;  // seconds since the epoch
  std::map<std::string, Ceiling> values;

  double get(const std::string& name) const;  // 0 when absent
};

nlohmann::json to_json(const Ceilings& ceilings);
Expected<Ceilings> ceilings_from_json(const nlohmann::json& json);

/// Measures in this process (run it in a worker). A GPU's need a device. `progress` gets each ceiling's name.
Expected<Ceilings> measure_ceilings(BackendKind backend, const MachineInfo& machine,
                                    const std::function<void(const std::string&)>& progress = {});

/// The file of a machine key below the user's cache folder ($XDG_CACHE_HOME or ~/.cache)/gauntlet/.
std::string ceilings_path(const std::string& machine_key);
std::optional<Ceilings> load_ceilings(const std::string& machine_key);
Expected<void> save_ceilings(const Ceilings& ceilings);

/// Where a time sits under the ceilings.
struct RooflinePoint {
  double floor_ns = 0;  // the time the ceilings allow
  double percent = 0;   // floor over measured
  std::string bound_by; // "memory", "compute"; empty when the ceilings lack what the cost needs
  double intensity = 0; // FLOPs per byte; 0 when no bytes move
};
RooflinePoint place(const Cost& cost, double ns, const Ceilings& ceilings);

}  // namespace gauntlet::lab
