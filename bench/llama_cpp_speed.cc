// llama.cpp's speed the way its own llama-bench takes it: llama_decode over random tokens through
// the C API of the library in npm's package, a kept thread pool, no sampling, no JavaScript.
//   llama_cpp_speed <folder of libllama> <model.gguf> <threads> <repetitions> <test>...
// A test is decode:<tokens> or prefill:<tokens>. Prints one JSON object.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "llama_cpp_speed: %s\n", what.c_str());
  std::exit(1);
}

// The package has no headers. Its parameter structs are returned through a pointer and taken on the
// stack as last argument, so a larger one serves in their place; the few fields set below are
// checked against their documented defaults first, and against what the context says afterwards.
template <int kBytes>
struct Opaque {
  alignas(16) unsigned char bytes[kBytes] = {};

  std::int32_t& at(int offset) { return *reinterpret_cast<std::int32_t*>(bytes + offset); }
};
using ModelParams = Opaque<512>;
using ContextParams = Opaque<512>;
using Batch = Opaque<128>;
using PoolParams = Opaque<2048>;

constexpr int kContext = 0, kBatch = 4, kMicroBatch = 8, kThreads = 28, kThreadsBatch = 32;
constexpr int kFlashAttention = 52;  // -1 automatic, 0 off, 1 on

class Library {
 public:
  explicit Library(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libllama.") || name == "libllama.so") path_ = entry.path();
    }
    handle_ = path_.empty() ? nullptr : dlopen(path_.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!handle_) fail("no libllama in " + folder.string());
  }

  /// Looks in the libraries that this one brought, too.
  template <class Function>
  Function* get(const char* name) const {
    void* found = dlsym(handle_, name);
    if (!found) fail(std::string("the library has no ") + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  fs::path path_;
  void* handle_ = nullptr;
};

struct Engine {
  void* context = nullptr;
  void* memory = nullptr;
  std::int32_t vocab = 0;
  int (*decode)(void*, Batch) = nullptr;
  Batch (*batch_of)(std::int32_t*, std::int32_t) = nullptr;
  void (*clear)(void*, bool) = nullptr;
  void (*synchronize)(void*) = nullptr;

  void run(std::vector<std::int32_t>& tokens) const {
    if (decode(context, batch_of(tokens.data(), static_cast<std::int32_t>(tokens.size()))) != 0) {
      fail("llama_decode failed");
    }
    synchronize(context);
  }
};

void quiet(int, const char*, void*) {}

Engine open(const fs::path& folder, const std::string& model_path, std::int32_t threads) {
  const Library library(folder);
  library.get<void(void (*)(int, const char*, void*), void*)>("llama_log_set")(quiet, nullptr);
  library.get<void(const char*)>("ggml_backend_load_all_from_path")(folder.c_str());
  auto model_params = library.get<ModelParams()>("llama_model_default_params")();
  void* model = library.get<void*(const char*, ModelParams)>("llama_model_load_from_file")(
      model_path.c_str(), model_params);
  if (!model) fail("cannot load " + model_path);

  auto params = library.get<ContextParams()>("llama_context_default_params")();
  if (params.at(kContext) != 512 || params.at(kBatch) != 2048 || params.at(kMicroBatch) != 512 ||
      params.at(kThreads) != 4 || params.at(kThreadsBatch) != 4 ||
      params.at(kFlashAttention) != -1) {
    fail("this version's context parameters lie elsewhere; only the pinned version is known");
  }
  params.at(kContext) = 2048;
  params.at(kThreads) = params.at(kThreadsBatch) = threads;
  params.at(kFlashAttention) = 1;

  Engine engine;
  engine.context = library.get<void*(void*, ContextParams)>("llama_init_from_model")(model, params);
  if (!engine.context) fail("cannot make a context");
  if (library.get<std::int32_t(void*)>("llama_n_threads")(engine.context) != threads ||
      library.get<std::uint32_t(void*)>("llama_n_ctx")(engine.context) != 2048) {
    fail("the context did not take its parameters");
  }
  engine.memory = library.get<void*(void*)>("llama_get_memory")(engine.context);
  engine.vocab = library.get<std::int32_t(void*)>("llama_vocab_n_tokens")(
      library.get<void*(void*)>("llama_model_get_vocab")(model));
  engine.decode = library.get<int(void*, Batch)>("llama_decode");
  engine.batch_of = library.get<Batch(std::int32_t*, std::int32_t)>("llama_batch_get_one");
  engine.clear = library.get<void(void*, bool)>("llama_memory_clear");
  engine.synchronize = library.get<void(void*)>("llama_synchronize");

  // Without a pool of its own, this build starts its threads anew for every graph.
  auto pool_params = library.get<PoolParams(int)>("ggml_threadpool_params_default")(threads);
  void* cpu = library.get<void*(const char*)>("ggml_backend_reg_by_name")("CPU");
  using PoolNew = void*(PoolParams*);
  auto* pool_new = reinterpret_cast<PoolNew*>(library.get<void*(void*, const char*)>(
      "ggml_backend_reg_get_proc_address")(cpu, "ggml_threadpool_new"));
  if (!pool_new) fail("the CPU backend has no thread pool");
  void* pool = pool_new(&pool_params);
  library.get<void(void*, void*, void*)>("llama_attach_threadpool")(engine.context, pool, nullptr);
  std::printf("{\"system\": \"%s\", \"tests\": [",
              library.get<const char*()>("llama_print_system_info")());
  return engine;
}

/// Tokens per second of one repetition.
double measure(const Engine& engine, bool decode, int count, std::mt19937& random) {
  std::uniform_int_distribution<std::int32_t> any(0, engine.vocab - 1);
  engine.clear(engine.memory, false);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(decode ? 1 : count));
  for (auto& token : tokens) token = any(random);
  const auto start = Clock::now();
  for (int i = 0; i < (decode ? count : 1); ++i) {
    engine.run(tokens);
    tokens[0] = any(random);
  }
  return count / std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) fail("give <folder of libllama> <model.gguf> <threads> <repetitions> <test>...");
  const Engine engine = open(argv[1], argv[2], std::atoi(argv[3]));
  std::mt19937 random(1);
  for (int i = 5; i < argc; ++i) {
    const std::string test = argv[i];
    const auto colon = test.find(':');
    const bool decode = test.substr(0, colon) == "decode";
    const int count = std::atoi(test.c_str() + colon + 1);
    measure(engine, decode, count, random);
    std::printf("%s{\"test\": \"%s\", \"tokens\": %d, \"tok_s\": [", i > 5 ? ", " : "",
                decode ? "decode" : "prefill", count);
    for (int repetition = 0; repetition < std::atoi(argv[4]); ++repetition) {
      std::printf("%s%.3f", repetition > 0 ? ", " : "", measure(engine, decode, count, random));
    }
    std::printf("]}");
  }
  std::printf("]}\n");
  std::fflush(stdout);
  std::_Exit(0);  // the pool's threads still poll
}
