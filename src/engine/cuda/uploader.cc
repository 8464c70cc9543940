#include "engine/cuda/uploader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "core/os/threads.h"
#include "model/mxfp4.h"
#include "model/random_rows.h"

namespace gauntlet::engine::cuda {
namespace {

using kernels::cuda::FragmentMatrix;
using kernels::cuda::kBlockRows;
using kernels::cuda::PlainMatrix;
using kernels::cuda::RowOrder;
using kernels::cuda::RowSource;
using kernels::cuda::WeightFormat;
using model::Matrix;
using model::WeightType;

constexpr std::int64_t kSlotBytes = 64 << 20;
constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Of the random matrix that this one may be a view of.
std::int64_t whole_cols(const Matrix& matrix) {
  return matrix.random_cols > 0 ? matrix.random_cols : matrix.cols;
}

/// Bytes of a row as it is staged.
std::int64_t staged_row_bytes(const Matrix& matrix) {
  return matrix.type == WeightType::mxfp4 ? matrix.cols / 2 + matrix.cols / 32 : matrix.cols * 2;
}

/// To nearest, ties to even; a NaN stays one.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>(bits >> 16 | 64);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void read_bf16(const Matrix& from, std::int64_t row, std::uint16_t* out) {
  if (from.type == WeightType::bf16) return from.read_row_bf16(row, out);
  std::vector<float> values(static_cast<std::size_t>(from.cols));
  from.read_row(row, values.data());
  std::transform(values.begin(), values.end(), out, to_bf16);
}

}  // namespace

Uploader::Uploader(const model::ModelWeights& weights, std::int64_t all_bytes,
                   std::function<void(double)> progress)
    : weights_(weights), all_bytes_(all_bytes), progress_(std::move(progress)) {}

Uploader::Slot& Uploader::next_slot() {
  Slot& slot = slots_[turn_++ % kSlots];
  if (slot.used) slot.free.wait();
  slot.used = true;
  return slot;
}

RowSource Uploader::stage(const Matrix& from, std::int64_t first, std::int64_t count, Slot& slot,
                          std::int64_t& offset) {
  RowSource source{.rows = count};
  if (from.is_random()) {
    source.random_key = from.random_key;
    source.first_random_row = from.random_first_row + first;
    source.first_random_col = from.random_first_col;
    source.random_cols = whole_cols(from);
    return source;
  }
  // Random rows are made where they go: a model of them locks no pages.
  if (slot.host.data() == nullptr) {
    slot.host = PinnedMemory(kSlotBytes);
    slot.device = DeviceMemory(kSlotBytes);
  }
  source.data = slot.device.data() + offset;
  std::uint8_t* to = slot.host.data() + offset;
  const bool mxfp4 = from.type == WeightType::mxfp4;
  const std::int64_t nibble_bytes = mxfp4 ? from.cols / 2 : from.cols * 2;
  offset += aligned(count * nibble_bytes);
  std::uint8_t* scales = slot.host.data() + offset;
  if (mxfp4) {
    source.scales = slot.device.data() + offset;
    offset += aligned(count * (from.cols / 32));
  }
  check(offset <= kSlotBytes, "more rows than a slot holds");
  constexpr std::int64_t kGrain = 16;
  parallel_for(
      count,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          if (mxfp4) {
            from.read_row_mxfp4(first + r, to + r * nibble_bytes, scales + r * (from.cols / 32));
          } else {
            read_bf16(from, first + r, reinterpret_cast<std::uint16_t*>(to + r * nibble_bytes));
          }
        }
      },
      kGrain);
  return source;
}

void Uploader::send(Slot& slot, std::int64_t bytes) {
  if (bytes == 0) return;
  cuda_check(cudaMemcpyAsync(slot.device.data(), slot.host.data(), static_cast<std::size_t>(bytes),
                             cudaMemcpyHostToDevice, stream_));
}

void Uploader::done(std::int64_t bytes) {
  done_bytes_ += bytes;
  if (progress_) {
    progress_(std::min(1.0, static_cast<double>(done_bytes_) / static_cast<double>(all_bytes_)));
  }
}

void Uploader::numbers(const std::vector<float>& values, float* to) {
  cuda_check(cudaMemcpyAsync(to, values.data(), values.size() * sizeof(float),
                             cudaMemcpyHostToDevice, stream_));
  stream_.wait();
  done(std::ssize(values) * 4);
}

void Uploader::in_pieces(const Sources& sources, const Put& put) {
  const Matrix& like = *sources[0];
  const auto scales = model::random_mxfp4_scales(whole_cols(like));
  kernels::cuda::Pack work{
      .source_format = like.type == WeightType::mxfp4 ? WeightFormat::mxfp4 : WeightFormat::bf16,
      .cols = like.cols,
      .random_step = model::random_bf16_step(whole_cols(like)),
      .random_scales = {.lower = scales.lower, .upper_of_256 = scales.upper_of_256}};
  std::int64_t rows = 0;
  for (const Matrix* source : sources) rows += source->rows;
  // Several sources fit a slot whole; a single one may be longer and goes block by block.
  std::int64_t piece = rows;
  if (sources.size() == 1) {
    const std::int64_t fitting = kSlotBytes / staged_row_bytes(like) / 2;
    piece = std::max<std::int64_t>(fitting / kBlockRows, 1) * kBlockRows;
  }
  for (std::int64_t first = 0; first < rows; first += piece) {
    const std::int64_t count = std::min(piece, rows - first);
    Slot& slot = next_slot();
    std::int64_t offset = 0;
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const std::int64_t own = sources.size() == 1 ? count : sources[s]->rows;
      work.sources[s] = stage(*sources[s], first, own, slot, offset);
    }
    send(slot, offset);
    put(work, first, count);
    slot.free.record(stream_);
  }
  for (const Matrix* source : sources) weights_.release(*source);
}

void Uploader::fragments(const Sources& sources, RowOrder order, const FragmentMatrix& shape,
                         std::uint8_t* to) {
  in_pieces(sources, [&](kernels::cuda::Pack& work, std::int64_t first, std::int64_t rows) {
    work.order = order;
    work.target = shape;
    work.target.rows = rows;
    work.out = to + first / kBlockRows * shape.col_blocks() * shape.block_bytes();
    work.target.data = work.out;
    kernels::cuda::pack(work, {.stream = stream_});
    done(work.target.bytes());
  });
}

void Uploader::plain(const Sources& sources, const PlainMatrix& shape, std::uint8_t* to,
                     std::uint8_t* scales_to) {
  in_pieces(sources, [&](kernels::cuda::Pack& work, std::int64_t first, std::int64_t rows) {
    PlainMatrix before = shape, made = shape;
    before.rows = first;
    made.rows = rows;
    work.target = {.format = shape.format, .rows = rows, .cols = shape.cols};
    work.out = to + before.data_bytes();
    kernels::cuda::unpack(work, scales_to + before.scale_bytes(), {.stream = stream_});
    done(made.data_bytes() + made.scale_bytes());
  });
}

void Uploader::finish() { stream_.wait(); }

}  // namespace gauntlet::engine::cuda
