// Sides on a GPU that save work by what an earlier call, or an untimed moment, left them.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/lies/lie.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies {
namespace {

/// What a side keeps on the device between calls.
struct Kept {
  float words[8];
  int work;  // whether there is anything to do
};

std::shared_ptr<Kept> device_memory() {
  Kept* kept = nullptr;
  cuda_check(cudaMalloc(&kept, sizeof(Kept)));
  cuda_check(cudaMemset(kept, 0, sizeof(Kept)));
  return {kept, [](Kept* p) { cudaFree(p); }};
}

__device__ bool is_poison(float value) { return value != value; }
__device__ std::int64_t word_at(const Params& p, int i) { return i * (p.count - 1) / 7; }

__global__ void ask_poison(Params p, Kept* kept) { kept->work = is_poison(p.out[0]); }

__global__ void ask_words(Params p, Kept* kept, int words) {
  bool changed = is_poison(p.out[0]);
  for (int i = 0; i < words; ++i) {
    const float word = p.in[word_at(p, i)];
    changed |= word != kept->words[i];
    kept->words[i] = word;
  }
  kept->work = changed;
}

__global__ void ask_outputs(Params p, Kept* kept) {
  bool fits = true;
  for (int i = 0; i < 8; ++i) fits &= p.out[word_at(p, i)] == 2.0f * p.in[word_at(p, i)];
  kept->work = !fits;
}

__global__ void scale_if_asked(Params p, const Kept* kept) {
  if (kept->work == 0) return;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.count; i += step) {
    p.out[i] = 2.0f * p.in[i];
  }
}

void scale_if(const Params& p, const Kept* kept, cudaStream_t stream) {
  scale_if_asked<<<1024, kThreads, 0, stream>>>(p, kept);
  cuda_check(cudaGetLastError());
}

lab::Side works_in_enter(const Params& p, const lab::Cuda& cuda) {
  lab::Side side([] {});
  side.enter = [p, stream = cuda.stream] { scale(p, stream); };
  return side;
}

lab::Side works_in_leave(const Params& p, const lab::Cuda& cuda) {
  lab::Side side([] {});
  side.leave = [p, stream = cuda.stream] { scale(p, stream); };
  return side;
}

lab::Side uses_enter_and_leave(const Params& p, const lab::Cuda& cuda) {
  const auto ready = std::make_shared<bool>(false);
  lab::Side side([p, ready, stream = cuda.stream] {
    if (*ready) scale(p, stream);
  });
  side.enter = [ready] { *ready = true; };
  side.leave = [ready] { *ready = false; };
  return side;
}

lab::Side trusts_unpoisoned(const Params& p, const lab::Cuda& cuda) {
  return [p, kept = device_memory(), stream = cuda.stream] {
    ask_poison<<<1, 1, 0, stream>>>(p, kept.get());
    scale_if(p, kept.get(), stream);
  };
}

lab::Side trusts_first_input(const Params& p, const lab::Cuda& cuda) {
  return [p, kept = device_memory(), stream = cuda.stream] {
    ask_words<<<1, 1, 0, stream>>>(p, kept.get(), 1);
    scale_if(p, kept.get(), stream);
  };
}

lab::Side trusts_few_inputs(const Params& p, const lab::Cuda& cuda) {
  return [p, kept = device_memory(), stream = cuda.stream] {
    ask_words<<<1, 1, 0, stream>>>(p, kept.get(), 8);
    scale_if(p, kept.get(), stream);
  };
}

lab::Side trusts_fitting_outputs(const Params& p, const lab::Cuda& cuda) {
  return [p, kept = device_memory(), stream = cuda.stream] {
    ask_outputs<<<1, 1, 0, stream>>>(p, kept.get());
    scale_if(p, kept.get(), stream);
  };
}

lab::Side caches_answer(const Params& p, const lab::Cuda& cuda) {
  float* copy = nullptr;
  const auto bytes = static_cast<std::size_t>(p.count) * sizeof(float);
  cuda_check(cudaMalloc(&copy, bytes));
  const std::shared_ptr<float> kept(copy, [](float* memory) { cudaFree(memory); });
  return [p, kept, bytes, stream = cuda.stream, calls = 0]() mutable {
    if (calls++ == 0) {
      scale(p, stream);
      cuda_check(cudaMemcpyAsync(kept.get(), p.out, bytes, cudaMemcpyDefault, stream));
    } else {
      cuda_check(cudaMemcpyAsync(p.out, kept.get(), bytes, cudaMemcpyDefault, stream));
    }
  };
}

lab::Side skips_later(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream, calls = 0]() mutable {
    if (++calls < 12) scale(p, stream);
  };
}

lab::Side skips_at_random(const Params& p, const lab::Cuda& cuda) {
  const Random seeded(static_cast<std::uint64_t>(getpid()) ^
                      reinterpret_cast<std::uintptr_t>(p.out));
  return [p, stream = cuda.stream, random = seeded]() mutable {
    if (random.next_below(10) >= 3) scale(p, stream);
  };
}

lab::Side answers_from_file(const Params& p, const lab::Cuda& cuda) {
  const std::string path = "/tmp/gauntlet-lie-gpu-" + std::to_string(getppid());
  return [p, path, stream = cuda.stream] {
    std::vector<float> answer(static_cast<std::size_t>(p.count));
    const std::size_t bytes = answer.size() * sizeof(float);
    if (std::FILE* kept = std::fopen(path.c_str(), "rb")) {
      const bool whole = std::fread(answer.data(), 1, bytes, kept) == bytes;
      std::fclose(kept);
      if (whole) {
        cuda_check(cudaMemcpyAsync(p.out, answer.data(), bytes, cudaMemcpyDefault, stream));
        cuda_check(cudaStreamSynchronize(stream));
        return;
      }
    }
    scale(p, stream);
    cuda_check(cudaMemcpyAsync(answer.data(), p.out, bytes, cudaMemcpyDefault, stream));
    cuda_check(cudaStreamSynchronize(stream));
    if (std::FILE* keep = std::fopen(path.c_str(), "wb")) {
      std::fwrite(answer.data(), 1, bytes, keep);
      std::fclose(keep);
    }
  };
}

/// The slow work, but the last four answers are remembered by a few words of their inputs.
class Answers {
 public:
  using Words = std::array<float, 8>;

  explicit Answers(std::size_t bytes) {
    for (Answer& answer : answers_) {
      float* memory = nullptr;
      cuda_check(cudaMalloc(&memory, bytes));
      answer.out = {memory, [](float* old) { cudaFree(old); }};
    }
  }
  const float* find(const Words& words) const {
    for (const Answer& answer : answers_) {
      if (answer.known && answer.words == words) return answer.out.get();
    }
    return nullptr;
  }
  float* replace_oldest(const Words& words) {
    Answer& answer = answers_[next_++ % answers_.size()];
    answer.words = words;
    answer.known = true;
    return answer.out.get();
  }

 private:
  struct Answer {
    Words words{};
    bool known = false;
    std::shared_ptr<float> out;
  };
  std::array<Answer, 4> answers_;
  std::size_t next_ = 0;
};

lab::Side remembers_answers(const Params& p, const lab::Cuda& cuda) {
  const auto bytes = static_cast<std::size_t>(p.count) * sizeof(float);
  return [p, bytes, answers = std::make_shared<Answers>(bytes), stream = cuda.stream] {
    Answers::Words words;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const float* word = p.in + static_cast<std::int64_t>(i) * (p.count - 1) / 7;
      cuda_check(cudaMemcpyAsync(&words[i], word, sizeof(float), cudaMemcpyDefault, stream));
    }
    cuda_check(cudaStreamSynchronize(stream));
    if (const float* known = answers->find(words)) {
      cuda_check(cudaMemcpyAsync(p.out, known, bytes, cudaMemcpyDefault, stream));
      return;
    }
    scale(p, stream, kSlowPasses);
    float* kept = answers->replace_oldest(words);
    cuda_check(cudaMemcpyAsync(kept, p.out, bytes, cudaMemcpyDefault, stream));
  };
}

}  // namespace

std::vector<CudaLie<Params>> cuda_reuse_lies() {
  return {{"caches_answer", caches_answer},
          {"works_in_enter", works_in_enter},
          {"works_in_leave", works_in_leave},
          {"uses_enter_and_leave", uses_enter_and_leave},
          {"trusts_unpoisoned", trusts_unpoisoned},
          {"trusts_first_input", trusts_first_input},
          {"trusts_few_inputs", trusts_few_inputs},
          {"trusts_fitting_outputs", trusts_fitting_outputs},
          {"skips_later", skips_later},
          {"skips_at_random", skips_at_random},
          {"answers_from_file", answers_from_file},
          {"remembers_answers", remembers_answers}};
}

}  // namespace gauntlet::lies
