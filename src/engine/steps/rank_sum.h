// Where a sum over ranks has its place: a model that is cut by heads, widths or experts computes a
// part of what attention and experts add to the residual, and every rank needs all of it.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "core/check.h"

namespace gauntlet::engine::inline steps {

/// What is summed; ranks that cut the two in different ways sum them in different groups.
enum class SumOf { attention, experts };

/// One rank's part of what a layer adds to the residual.
struct PartialRows {
  float* values = nullptr;  // [rows, width], on a GPU in its memory
  std::int64_t rows = 0;    // padding included: the same on all ranks
  std::int64_t width = 0;
  SumOf of = SumOf::attention;

  std::int64_t count() const { return rows * width; }
};

/// A call that other ranks did not come to; the sentence names them.
class RankFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Rows of logits, of which a rank has computed some columns: which, is known to whoever divided
/// the vocabulary.
struct PartialColumns {
  float* values = nullptr;  // [rows, stride], in a GPU's memory
  std::int64_t rows = 0;
  std::int64_t stride = 0;
};

/// Called in every layer of every step, twice, in the same order on all ranks.
class RankSum {
 public:
  virtual ~RankSum() = default;

  /// Puts in place of the part the sum over all ranks, with the same bits on each.
  ///
  /// On CPUs one thread of a step calls it while the others wait; what it throws ends the step, and
  /// this is thrown by Runner::finish(). `stream` is null.
  ///
  /// On a GPU it is enqueued on `stream`, a cudaStream_t. Steps that decode are captured into
  /// graphs and replayed: there it is called once for each graph, and must be capturable.
  virtual void add_up(const PartialRows& part, void* stream) = 0;

  /// Brings the columns of the others to this rank's, on a GPU whose vocabulary is divided: after
  /// the last layer, enqueued and captured as sums are.
  virtual void gather(const PartialColumns& /*part*/, void* /*stream*/) {
    fail("this sum over ranks gathers no columns");
  }

  /// Held while a step is enqueued on a GPU, or captured. While one thread of a process captures,
  /// others must not wait for the device, which they share: there it is one rank's turn at a time.
  virtual std::unique_lock<std::mutex> turn() { return {}; }

  /// Waits for what was enqueued on a GPU, as long as the other ranks take part: throws RankFailure
  /// where they do not.
  virtual void wait(const std::function<bool()>& is_done) {
    while (!is_done()) std::this_thread::yield();
  }
};

}  // namespace gauntlet::engine::inline steps
