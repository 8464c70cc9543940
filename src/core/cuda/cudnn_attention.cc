#include "core/cuda/cudnn_attention.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/cuda/check.h"
#include "core/cuda/memory.h"

namespace gauntlet {
namespace {

// Numbers of cuDNN 9's backend API (cudnn_graph.h), which cuDNN keeps from one release to the next.
enum DescriptorKind : int {
  kPointwise = 0,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
};

enum ValueType : int {
  kHandleValue = 0,
  kDataTypeValue = 1,
  kBoolValue = 2,
  kInt64Value = 3,
  kPointerValue = 6,
  kHeuristicValue = 8,
  kPointwiseModeValue = 14,
  kDescriptorValue = 15,
  kReductionValue = 18,
  kCharValue = 24,
};

enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kPlanJson = 405,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorExtents = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kMatmulType = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescriptor = 1523,
  kReductionOperator = 1600,
  kReductionType = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
};

enum DataType : int { kFloat = 0, kInt32 = 4, kBf16 = 9, kBool = 11 };
enum Mode : int {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kAtLeast = 303,
  kIndex = 501,
  kSelect = 601
};
enum Reduce : int { kSum = 0, kMax = 3 };
constexpr int kHeuristicA = 3;

using Raw = void*;

struct CudnnFunctions {
  int (*create)(Raw*) = nullptr;
  int (*destroy)(Raw) = nullptr;
  int (*set_stream)(Raw, CUstream_st*) = nullptr;
  std::size_t (*version)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*make)(int, Raw*) = nullptr;
  int (*unmake)(Raw) = nullptr;
  int (*finalize)(Raw) = nullptr;
  int (*set)(Raw, int, int, std::int64_t, const void*) = nullptr;
  int (*get)(Raw, int, int, std::int64_t, std::int64_t*, void*) = nullptr;
  int (*execute)(Raw, Raw, Raw) = nullptr;
};

template <class F>
bool find_cudnn(const DynamicLibrary& library, const char* name, F*& function, Error& missing) {
  const auto found = library.symbol<F>(name);
  if (found) {
    function = *found;
  } else {
    missing = found.error();
  }
  return static_cast<bool>(found);
}

Expected<CudnnFunctions> cudnn_functions_of(const DynamicLibrary& library) {
  CudnnFunctions f;
  Error missing;
  const bool complete = find_cudnn(library, "cudnnCreate", f.create, missing) &&
                        find_cudnn(library, "cudnnDestroy", f.destroy, missing) &&
                        find_cudnn(library, "cudnnSetStream", f.set_stream, missing) &&
                        find_cudnn(library, "cudnnGetVersion", f.version, missing) &&
                        find_cudnn(library, "cudnnGetErrorString", f.error_string, missing) &&
                        find_cudnn(library, "cudnnBackendCreateDescriptor", f.make, missing) &&
                        find_cudnn(library, "cudnnBackendDestroyDescriptor", f.unmake, missing) &&
                        find_cudnn(library, "cudnnBackendFinalize", f.finalize, missing) &&
                        find_cudnn(library, "cudnnBackendSetAttribute", f.set, missing) &&
                        find_cudnn(library, "cudnnBackendGetAttribute", f.get, missing) &&
                        find_cudnn(library, "cudnnBackendExecute", f.execute, missing);
  if (!complete) return missing;
  return f;
}

using Extents = std::array<std::int64_t, 4>;

/// Numbers of the tensors that have memory, and of the constants.
enum Id : std::int64_t { kQ = 1, kK, kV, kOut, kScale, kMasked, kFirstVirtual };

/// Makes descriptors; the first refusal is kept and stops the rest.
class Builder {
 public:
  Builder(const CudnnFunctions& call, std::vector<Raw>& made) : call_(call), made_(made) {}

  const std::string& fault() const { return fault_; }
  bool good() const { return fault_.empty(); }

  Raw make(DescriptorKind kind) {
    Raw descriptor = nullptr;
    if (good()) accept(call_.make(kind, &descriptor), "cudnnBackendCreateDescriptor", kind);
    if (good()) made_.push_back(descriptor);
    return descriptor;
  }
  template <class T>
  void set(Raw to, Attribute attribute, ValueType type, std::span<const T> values) {
    if (!good()) return;
    const void* data = static_cast<const void*>(values.data());
    accept(call_.set(to, attribute, type, static_cast<std::int64_t>(values.size()), data),
           "cudnnBackendSetAttribute", attribute);
  }
  template <class T>
  void set(Raw to, Attribute attribute, ValueType type, const T& value) {
    set(to, attribute, type, std::span<const T>(&value, 1));
  }
  void finish(Raw descriptor, const char* what) {
    if (good()) accept(call_.finalize(descriptor), what, 0);
  }

 private:
  void accept(int status, const char* what, int number) {
    if (status != 0) {
      fault_ = std::string("cuDNN: ") + what + " (" + std::to_string(number) +
               "): " + call_.error_string(status);
    }
  }

  const CudnnFunctions& call_;
  std::vector<Raw>& made_;
  std::string fault_;
};

/// The operations of causal attention as cuDNN's engines for attention know them: scores, their
/// scale, the mask by indices, the softmax in its parts, and the product with the values.
class AttentionGraph {
 public:
  AttentionGraph(Builder& build, const CausalAttention& attention) : b_(build), a_(attention) {}

  std::vector<Raw> operations() {
    const std::int64_t s = a_.sequence, d = a_.head_dim;
    const Extents of_scores{1, a_.heads, s, s}, of_rows{1, a_.heads, s, 1}, one{1, 1, 1, 1};
    const Extents rows{a_.heads * s * d, s * d, d, 1}, columns{a_.heads * s * d, s * d, 1, d};
    Raw q = tensor(kQ, kBf16, {1, a_.heads, s, d}, rows);
    Raw k = tensor(kK, kBf16, {1, a_.heads, d, s}, columns);
    Raw v = tensor(kV, kBf16, {1, a_.heads, s, d}, rows);
    Raw out = tensor(kOut, kBf16, {1, a_.heads, s, d}, rows);
    Raw scale = tensor(kScale, kFloat, one, one, Kept::constant);
    Raw masked = tensor(kMasked, kFloat, one, one, Kept::constant);

    Raw scores = between(of_scores);
    matmul(q, k, scores);
    Raw scaled = between(of_scores);
    pointwise(kMul, {.x = scores, .b = scale, .y = scaled});
    Raw row = between(of_scores, kInt32), column = between(of_scores, kInt32);
    pointwise(kIndex, {.x = scaled, .y = row}, kFloat, 2);
    pointwise(kIndex, {.x = scaled, .y = column}, kFloat, 3);
    Raw seen = between(of_scores, kBool);
    pointwise(kAtLeast, {.x = row, .b = column, .y = seen}, kBool);
    Raw visible = between(of_scores);
    pointwise(kSelect, {.x = scaled, .b = masked, .t = seen, .y = visible});
    Raw top = between(of_rows);
    reduce(kMax, visible, top);
    Raw below = between(of_scores), weights = between(of_scores);
    pointwise(kSub, {.x = visible, .b = top, .y = below});
    pointwise(kExp, {.x = below, .y = weights});
    Raw sum = between(of_rows), shares = between(of_scores, kBf16);
    reduce(kSum, weights, sum);
    // Nobody reads the logarithms of the sums, but without them no engine knows the graph.
    Raw log_sum = between(of_rows), statistics = between(of_rows);
    pointwise(kLog, {.x = sum, .y = log_sum});
    pointwise(kAdd, {.x = top, .b = log_sum, .y = statistics});
    pointwise(kDiv, {.x = weights, .b = sum, .y = shares});
    matmul(shares, v, out);
    return std::move(operations_);
  }

 private:
  enum class Kept { memory, constant, nowhere };
  struct Operands {
    Raw x = nullptr;
    Raw b = nullptr;
    Raw t = nullptr;
    Raw y = nullptr;
  };

  Raw tensor(std::int64_t id, DataType type, const Extents& extents, const Extents& strides,
             Kept kept = Kept::memory) {
    Raw t = b_.make(kTensor);
    b_.set(t, kTensorType, kDataTypeValue, type);
    b_.set(t, kTensorExtents, kInt64Value, std::span<const std::int64_t>(extents));
    b_.set(t, kTensorStrides, kInt64Value, std::span<const std::int64_t>(strides));
    b_.set(t, kTensorId, kInt64Value, id);
    b_.set(t, kTensorAlignment, kInt64Value, std::int64_t{16});
    b_.set(t, kTensorIsVirtual, kBoolValue, kept == Kept::nowhere);
    b_.set(t, kTensorIsByValue, kBoolValue, kept == Kept::constant);
    b_.finish(t, "a tensor");
    return t;
  }

  Raw between(const Extents& extents, DataType type = kFloat) {
    const Extents strides{extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3],
                          1};
    return tensor(next_++, type, extents, strides, Kept::nowhere);
  }

  void matmul(Raw x, Raw y, Raw to) {
    Raw how = b_.make(kMatmul);
    b_.set(how, kMatmulType, kDataTypeValue, kFloat);
    b_.finish(how, "a product");
    Raw operation = b_.make(kMatmulOperation);
    b_.set(operation, kMatmulA, kDescriptorValue, x);
    b_.set(operation, kMatmulB, kDescriptorValue, y);
    b_.set(operation, kMatmulC, kDescriptorValue, to);
    b_.set(operation, kMatmulDescriptor, kDescriptorValue, how);
    add(operation);
  }

  void pointwise(Mode mode, const Operands& of, DataType precision = kFloat,
                 std::int64_t axis = -1) {
    Raw how = b_.make(kPointwise);
    b_.set(how, kPointwiseMode, kPointwiseModeValue, mode);
    b_.set(how, kPointwisePrecision, kDataTypeValue, precision);
    if (axis >= 0) b_.set(how, kPointwiseAxis, kInt64Value, axis);
    b_.finish(how, "a function of each element");
    Raw operation = b_.make(kPointwiseOperation);
    b_.set(operation, kPointwiseDescriptor, kDescriptorValue, how);
    b_.set(operation, kPointwiseX, kDescriptorValue, of.x);
    b_.set(operation, kPointwiseY, kDescriptorValue, of.y);
    if (of.b != nullptr) b_.set(operation, kPointwiseB, kDescriptorValue, of.b);
    if (of.t != nullptr) b_.set(operation, kPointwiseT, kDescriptorValue, of.t);
    add(operation);
  }

  void reduce(Reduce by, Raw x, Raw to) {
    Raw how = b_.make(kReduction);
    b_.set(how, kReductionType, kDataTypeValue, kFloat);
    b_.set(how, kReductionOperator, kReductionValue, by);
    b_.finish(how, "a reduction");
    Raw operation = b_.make(kReductionOperation);
    b_.set(operation, kReductionDescriptor, kDescriptorValue, how);
    b_.set(operation, kReductionX, kDescriptorValue, x);
    b_.set(operation, kReductionY, kDescriptorValue, to);
    add(operation);
  }

  void add(Raw operation) {
    b_.finish(operation, "an operation");
    operations_.push_back(operation);
  }

  Builder& b_;
  const CausalAttention& a_;
  std::int64_t next_ = kFirstVirtual;
  std::vector<Raw> operations_;
};

}  // namespace

struct CudnnAttention::State {
  CudnnFunctions call;
  Raw handle = nullptr;
  std::vector<Raw> made;
  Raw plan = nullptr;
  Raw pack = nullptr;
  float scale = 1;
  float masked = -INFINITY;
  DeviceMemory workspace;

  ~State() {
    for (auto each = made.rbegin(); each != made.rend(); ++each) call.unmake(*each);
    if (handle != nullptr) call.destroy(handle);
  }

  /// The first plan that the heuristic's engines agree to.
  std::string choose(Builder& build, Raw graph) {
    Raw heuristic = build.make(kHeuristic);
    build.set(heuristic, kHeuristicGraph, kDescriptorValue, graph);
    build.set(heuristic, kHeuristicMode, kHeuristicValue, kHeuristicA);
    build.finish(heuristic, "the heuristic");
    std::int64_t count = 0;
    if (!build.good()) return build.fault();
    call.get(heuristic, kHeuristicResults, kDescriptorValue, 0, &count, nullptr);
    std::vector<Raw> configs(static_cast<std::size_t>(count));
    for (Raw& config : configs) config = build.make(kEngineConfig);
    if (!build.good()) return build.fault();
    call.get(heuristic, kHeuristicResults, kDescriptorValue, count, &count,
             static_cast<void*>(configs.data()));
    std::string fault = "cuDNN: its heuristic knows no engine for this attention";
    for (std::int64_t i = 0; i < count; ++i) {
      Builder attempt(call, made);
      Raw candidate = attempt.make(kPlan);
      attempt.set(candidate, kPlanHandle, kHandleValue, handle);
      attempt.set(candidate, kPlanConfig, kDescriptorValue, configs[static_cast<std::size_t>(i)]);
      attempt.finish(candidate, "a plan");
      if (attempt.good()) {
        plan = candidate;
        return {};
      }
      fault = attempt.fault();
    }
    return fault;
  }

  std::string prepare(const CausalAttention& attention) {
    scale = attention.scale;
    Builder build(call, made);
    const std::vector<Raw> operations = AttentionGraph(build, attention).operations();
    Raw graph = build.make(kGraph);
    build.set(graph, kGraphHandle, kHandleValue, handle);
    build.set(graph, kGraphOperations, kDescriptorValue, std::span<const Raw>(operations));
    build.finish(graph, "the graph of attention");
    if (!build.good()) return build.fault();
    if (std::string fault = choose(build, graph); !fault.empty()) return fault;

    std::int64_t bytes = 0, count = 0;
    call.get(plan, kPlanWorkspaceBytes, kInt64Value, 1, &count, &bytes);
    if (bytes > 0) workspace = DeviceMemory(bytes);
    const std::array<std::int64_t, 6> ids{kQ, kK, kV, kOut, kScale, kMasked};
    const std::array<const void*, 6> pointers{attention.q,   attention.k, attention.v,
                                              attention.out, &scale,      &masked};
    pack = build.make(kVariantPack);
    build.set(pack, kPackIds, kInt64Value, std::span<const std::int64_t>(ids));
    build.set(pack, kPackPointers, kPointerValue, std::span<const void* const>(pointers));
    build.set(pack, kPackWorkspace, kPointerValue, static_cast<void*>(workspace.data()));
    build.finish(pack, "the tensors' addresses");
    return build.fault();
  }
};

CudnnAttention::CudnnAttention() : state_(std::make_unique<State>()) {}
CudnnAttention::~CudnnAttention() = default;

LibrarySearch cudnn_search() {
  return {.names = {"libcudnn.so.9"}, .folders = cuda_library_folders()};
}

Expected<std::unique_ptr<CudnnAttention>> CudnnAttention::open(const CausalAttention& attention,
                                                               const LibrarySearch& search) {
  const auto library = DynamicLibrary::open(search);
  if (!library) return library.error();
  const auto functions = cudnn_functions_of(*library);
  if (!functions) return functions.error();
  // Its code may still be needed by a context that is torn down at exit.
  library->keep_loaded();

  std::unique_ptr<CudnnAttention> made(new CudnnAttention());
  State& state = *made->state_;
  state.call = *functions;
  if (const int status = state.call.create(&state.handle); status != 0) {
    return Error{std::string("cuDNN: cudnnCreate: ") + state.call.error_string(status)};
  }
  if (std::string fault = state.prepare(attention); !fault.empty()) return Error{std::move(fault)};
  return made;
}

void CudnnAttention::run(CUstream_st* stream) {
  State& s = *state_;
  int status = s.call.set_stream(s.handle, stream);
  if (status == 0) status = s.call.execute(s.handle, s.plan, s.pack);
  if (status != 0) fail(std::string("cuDNN: ") + s.call.error_string(status));
}

std::int64_t CudnnAttention::version() const {
  return static_cast<std::int64_t>(state_->call.version());
}

std::string CudnnAttention::plan() const {
  std::vector<char> text(1 << 16);
  std::int64_t count = 0;
  const int status = state_->call.get(state_->plan, kPlanJson, kCharValue,
                                      static_cast<std::int64_t>(text.size()), &count, text.data());
  return status == 0 ? std::string(text.data()) : std::string();
}

std::shared_ptr<CudnnAttention> require_cudnn_attention(const CausalAttention& attention) {
  auto opened = CudnnAttention::open(attention);
  if (!opened) fail(opened.error().message);
  return std::move(*opened);
}

}  // namespace gauntlet
