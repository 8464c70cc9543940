// The weights of a model as they lie in its files, seen through one set of views. A backend reads
// them row by row into its own layout; nothing here copies or converts a whole tensor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/expected.h"
#include "model/config.h"
#include "model/files/model_files.h"

namespace gauntlet::model {

enum class WeightType { f32, f16, bf16, q8_0, mxfp4 };

/// Where the sixteen bytes of an MXFP4 block keep their nibbles: in pairs of neighbours (low is
/// even) with the scales in a tensor of their own, or element j beside j + 16 behind the scale
/// byte.
enum class Mxfp4Order { neighbours, halves };

/// A matrix [rows, cols], rows being outputs. Element (r, c) is found by strides, so that a
/// transposed or interleaved tensor needs no copy. For block types a row is contiguous. A random
/// matrix has no data at all: its rows are made as they are read.
struct Matrix {
  WeightType type = WeightType::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::byte* data = nullptr;
  std::int64_t row_stride_bytes = 0;
  std::int64_t col_stride_bytes = 0;  // unused by block types
  Mxfp4Order order = Mxfp4Order::neighbours;
  const std::byte* scales = nullptr;  // of mxfp4 in neighbours order; else inside the block
  std::int64_t scale_row_stride_bytes = 0;
  std::uint64_t random_key = 0;  // of a random matrix, where data is null
  /// Of a view into a random matrix: where it begins, and how wide the whole is (0: as the view).
  std::int64_t random_first_row = 0;
  std::int64_t random_first_col = 0;
  std::int64_t random_cols = 0;

  bool is_random() const { return data == nullptr && rows > 0; }
  /// One row as float32, exactly.
  void read_row(std::int64_t row, float* out) const;
  /// One row of bf16 elements; only for type bf16.
  void read_row_bf16(std::int64_t row, std::uint16_t* out) const;
  /// One row of MXFP4 in neighbours order: cols/2 bytes of nibbles and cols/32 scale bytes. Only
  /// for type mxfp4.
  void read_row_mxfp4(std::int64_t row, std::uint8_t* nibbles, std::uint8_t* scale_bytes) const;
  /// Bytes that one row occupies in the file, scales included.
  std::int64_t row_bytes() const;
};

/// A row of numbers: norms, biases, sinks.
using Vector = std::vector<float>;

struct ExpertWeights {
  Matrix gate;       // [intermediate, hidden]
  Matrix up;         // [intermediate, hidden]
  Matrix down;       // [hidden, intermediate]
  Vector gate_bias;  // [intermediate]
  Vector up_bias;    // [intermediate]
  Vector down_bias;  // [hidden]
};

struct LayerWeights {
  Vector attention_norm;  // [hidden]
  Matrix q;               // [heads * head_dim, hidden]
  Matrix k;               // [kv_heads * head_dim, hidden]
  Matrix v;               // [kv_heads * head_dim, hidden]
  Matrix o;               // [hidden, heads * head_dim]
  Vector q_bias, k_bias, v_bias, o_bias;
  Vector sinks;        // [heads]
  Vector mlp_norm;     // [hidden]
  Matrix router;       // [experts, hidden]
  Vector router_bias;  // [experts]
  std::vector<ExpertWeights> experts;
};

/// Owns what the views point into; random weights need none.
class WeightStorage {
 public:
  virtual ~WeightStorage() = default;
  /// Tells the system that these bytes are not needed any more (they can be read again).
  virtual void release(const std::byte* data, std::size_t bytes) = 0;
};

struct ModelWeights {
  ModelConfig config;
  Matrix embedding;  // [vocab, hidden]
  Matrix lm_head;    // [vocab, hidden]
  Vector final_norm;
  std::vector<LayerWeights> layers;
  std::shared_ptr<WeightStorage> storage;
  std::int64_t file_bytes = 0;  // of all tensors

  /// Lets the pages of a matrix go after it was copied into another layout.
  void release(const Matrix& matrix) const;
  /// The same for some of its rows.
  void release(const Matrix& matrix, std::int64_t first_row, std::int64_t rows) const;
};

/// A folder with config.json and safetensors (one file, or shards with an index; Hugging Face's
/// names or the original release's), or a .gguf file. Everything is checked; an error names file
/// and tensor.
Expected<ModelWeights> load_model(const ModelFiles& files);

/// The same of whatever open_model() finds: a folder, a .gguf file or a known name.
Expected<ModelWeights> load_model(const std::string& name_or_path);

/// Deterministic random weights of a shape in gpt-oss's own types: bf16 dense, MXFP4 experts. They
/// take no memory beyond norms and biases. A layer does not depend on how many there are.
ModelWeights random_model(const ModelConfig& config, std::uint64_t seed);

}  // namespace gauntlet::model
