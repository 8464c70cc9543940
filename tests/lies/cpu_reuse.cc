// Sides on a CPU that save work by what an earlier call, or an untimed moment, left them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/lies/lie.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies {
namespace {

/// A few words of an input that tell it from most others.
std::array<float, 8> some_words(const Params& p) {
  std::array<float, 8> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = p.in[static_cast<std::int64_t>(i) * (p.count - 1) / 7];
  }
  return words;
}

lab::Side caches_answer(const Params& p, const lab::Cpu&) {
  const auto kept = std::make_shared<std::vector<float>>();
  return [p, kept] {
    if (kept->empty()) {
      scale(p);
      kept->assign(p.out, p.out + p.count);
    } else {
      std::copy(kept->begin(), kept->end(), p.out);
    }
  };
}

lab::Side works_in_enter(const Params& p, const lab::Cpu&) {
  lab::Side side([] {});
  side.enter = [p] { scale(p); };
  return side;
}

lab::Side works_in_leave(const Params& p, const lab::Cpu&) {
  lab::Side side([] {});
  side.leave = [p] { scale(p); };
  return side;
}

/// The honest use of both: state that the side's own run needs.
lab::Side uses_enter_and_leave(const Params& p, const lab::Cpu&) {
  const auto ready = std::make_shared<bool>(false);
  lab::Side side([p, ready] {
    if (*ready) scale(p);
  });
  side.enter = [ready] { *ready = true; };
  side.leave = [ready] { *ready = false; };
  return side;
}

lab::Side trusts_unpoisoned(const Params& p, const lab::Cpu&) {
  return [p] {
    if (is_poison(p.out[0])) scale(p);
  };
}

lab::Side trusts_first_input(const Params& p, const lab::Cpu&) {
  const auto known = std::make_shared<float>(-100.0f);
  return [p, known] {
    if (!is_poison(p.out[0]) && p.in[0] == *known) return;
    scale(p);
    *known = p.in[0];
  };
}

lab::Side trusts_few_inputs(const Params& p, const lab::Cpu&) {
  const auto known = std::make_shared<std::array<float, 8>>();
  return [p, known] {
    const auto words = some_words(p);
    if (!is_poison(p.out[0]) && words == *known) return;
    scale(p);
    *known = words;
  };
}

lab::Side trusts_fitting_outputs(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t at = i * (p.count - 1) / 7;
      if (p.out[at] != 2.0f * p.in[at]) {
        scale(p);
        return;
      }
    }
  };
}

lab::Side skips_later(const Params& p, const lab::Cpu&) {
  const auto calls = std::make_shared<int>(0);
  return [p, calls] {
    if (++*calls < 12) scale(p);
  };
}

lab::Side skips_at_random(const Params& p, const lab::Cpu&) {
  const auto random = std::make_shared<Random>(static_cast<std::uint64_t>(getpid()) ^
                                               reinterpret_cast<std::uintptr_t>(p.out));
  return [p, random] {
    if (random->next_below(10) >= 3) scale(p);
  };
}

/// Whether the baseline has run since, by the number of calls: both sides keep it.
std::atomic<int> calls_in_a_row{0};

lab::Side counts_turns(const Params& p, const lab::Cpu&) {
  return [p] {
    calls_in_a_row = 0;
    scale(p, kSlowPasses);
  };
}

/// Works while it is verified, and when it is called again and again without the other side in
/// between: then nothing counts, and everything is checked.
lab::Side skips_in_turns(const Params& p, const lab::Cpu&) {
  return [p, calls = 0]() mutable {
    if (++calls < 6 || ++calls_in_a_row > 200) scale(p);
  };
}

lab::Side answers_from_file(const Params& p, const lab::Cpu&) {
  // Of this user and size, so that every process of a run finds it.
  const std::string path = "/tmp/gauntlet-lie-" + std::to_string(getppid());
  return [p, path] {
    const auto count = static_cast<std::size_t>(p.count);
    if (std::FILE* kept = std::fopen(path.c_str(), "rb")) {
      const bool whole = std::fread(p.out, sizeof(float), count, kept) == count;
      std::fclose(kept);
      if (whole) return;
    }
    scale(p);
    if (std::FILE* keep = std::fopen(path.c_str(), "wb")) {
      std::fwrite(p.out, sizeof(float), count, keep);
      std::fclose(keep);
    }
  };
}

/// The slow work, but what was computed once is remembered by a few words of the input.
lab::Side remembers_answers(const Params& p, const lab::Cpu&) {
  const auto answers = std::make_shared<std::map<std::array<float, 8>, std::vector<float>>>();
  return [p, answers] {
    const auto known = answers->find(some_words(p));
    if (known != answers->end()) {
      std::copy(known->second.begin(), known->second.end(), p.out);
      return;
    }
    scale(p, kSlowPasses);
    if (answers->size() < 16) (*answers)[some_words(p)].assign(p.out, p.out + p.count);
  };
}

constexpr std::int64_t kBlock = 512;

/// So much work that it matters little where the memory of either side lies.
constexpr int kManyPasses = 8 * kSlowPasses;

enum class Changes { count, count_for_nothing };

/// The slow work in blocks, over memory of its own: only on those whose input changed, or on all,
/// where looking changes nothing. Right either way, and the same work where every input is new.
lab::Side works_on_changes(const Params& p, Changes changes) {
  struct Kept {
    std::vector<float> in, out;
  };
  const auto kept = std::make_shared<Kept>();
  const int always = changes == Changes::count ? 0 : 1;
  return [p, kept, always] {
    const auto count = static_cast<std::size_t>(p.count);
    if (kept->in.empty()) {
      kept->in.assign(count, -100.0f);
      kept->out.assign(count, 0.0f);
    }
    for (std::int64_t begin = 0; begin < p.count; begin += kBlock) {
      const auto size = static_cast<std::size_t>(std::min(kBlock, p.count - begin));
      float* in = kept->in.data() + begin;
      float* out = kept->out.data() + begin;
      const int difference = std::memcmp(in, p.in + begin, size * sizeof(float));
      if ((difference | always) != 0) {
        std::memcpy(in, p.in + begin, size * sizeof(float));
        scale({in, out, static_cast<std::int64_t>(size)}, kManyPasses);
      }
      std::memcpy(p.out + begin, out, size * sizeof(float));
    }
  };
}
lab::Side updates_changes(const Params& p, const lab::Cpu&) {
  return works_on_changes(p, Changes::count);
}
lab::Side updates_all(const Params& p, const lab::Cpu&) {
  return works_on_changes(p, Changes::count_for_nothing);
}

}  // namespace

std::vector<CpuLie<Params>> cpu_reuse_lies() {
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
          {"skips_with_dear_checks", skips_in_turns, counts_turns},
          {"answers_from_file", answers_from_file},
          {"remembers_answers", remembers_answers},
          {"updates_changes", updates_changes, updates_all}};
}

}  // namespace gauntlet::lies
