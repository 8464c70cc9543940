// Expectations: what a machine is known to reach, one file per machine key, changed only on
// request.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/records/result.h"

namespace gauntlet::lab::inline records {

struct ExpectedValue {
  double median = 0;
  double tolerance = 0;  // relative, from the noise of the run that recorded it, capped
};

struct Expectation {
  ExpectedValue ratio;
  std::optional<ExpectedValue> baseline_ns;  // on a GPU, where times repeat
  std::optional<ExpectedValue> optimized_ns;
  std::string status;  // passed, no_gain, or regressed where that was accepted
  std::map<std::string, std::int64_t> knobs;
  std::string run_id;  // provenance
  std::string commit;
  std::int64_t recorded_at = 0;
};

class Expectations {
 public:
  /// An absent file is an empty set; a broken one is an error.
  static Expected<Expectations> load(const std::string& folder, const std::string& machine_key);

  bool empty() const { return entries_.empty(); }
  const std::string& machine_key() const { return machine_key_; }
  const std::map<std::string, Expectation>& entries() const { return entries_; }
  const Expectation* find(const Result& result) const;

  /// Records a result that was verified, also a regressed one, which is then what to expect;
  /// others, and those of a sweep, are left out.
  void record(const Result& result, const std::string& run_id, const std::string& commit,
              std::int64_t now);
  Expected<void> save(const std::string& folder) const;

 private:
  std::string machine_key_;
  std::map<std::string, Expectation> entries_;  // by "id backend"
};

/// How a result stands to its expectation.
struct Comparison {
  enum class Verdict { none, as_expected, better, regressed };
  Verdict verdict = Verdict::none;
  std::string reason;
};
Comparison compare_with(const Expectation& expectation, const Result& result);

/// $GAUNTLET_EXPECTATIONS, ./expectations, or the expectations of the tree the program was built
/// in.
std::string expectations_folder(const std::string& program);

}  // namespace gauntlet::lab::inline records
