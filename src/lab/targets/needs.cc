#include "lab/targets/needs.h"

#include <algorithm>
#include <cstdlib>
#include <regex>

namespace gauntlet::lab::inline targets {
namespace {

enum class Of { host, gpu };

struct Form {
  const char* shown;
  const char* pattern;
  NumberedNeed::What what;
  Of of;
};
constexpr Form kForms[] = {
    {"sm_<n>", "sm_([1-9][0-9]*)(a?)", NumberedNeed::What::architecture, Of::gpu},
    {"<n> GPUs", "([1-9][0-9]*)() GPUs?", NumberedNeed::What::gpus, Of::gpu},
    {"<n> NUMA nodes", "([1-9][0-9]*)() NUMA nodes", NumberedNeed::What::numa_nodes, Of::host},
    {"<n> ranks", "([1-9][0-9]*)() ranks", NumberedNeed::What::ranks, Of::host},
};

struct Plain {
  const char* name;
  Of of;
};
constexpr Plain kPlain[] = {
    {"O_DIRECT", Of::host},
    {"cublas", Of::gpu},
    {"cudnn", Of::gpu},
    {"gauntlet-draft", Of::host},
    {"gauntlet-tiny-eagle3", Of::host},
    {"gds", Of::gpu},
    {"gpu numa node", Of::gpu},
    {"grace", Of::host},
    {"huge pages", Of::host},
    {"io_uring", Of::host},
    {"lz4", Of::host},
    {"mpi", Of::host},
    {"nccl", Of::host},
    {"nvls", Of::gpu},
    {"perf counters", Of::host},
    {"rdma", Of::host},
};

const Form* form_of(const std::string& need, std::smatch& match) {
  for (const Form& form : kForms) {
    if (std::regex_match(need, match, std::regex(form.pattern))) return &form;
  }
  return nullptr;
}

}  // namespace

std::optional<NumberedNeed> numbered_need(const std::string& need) {
  std::smatch match;
  const Form* form = form_of(need, match);
  if (form == nullptr) return std::nullopt;
  return NumberedNeed{.what = form->what,
                      .number = std::atoi(match[1].str().c_str()),
                      .exactly = match[2].length() > 0};
}

std::vector<std::string> plain_needs() {
  std::vector<std::string> names;
  for (const Plain& plain : kPlain) names.emplace_back(plain.name);
  return names;
}

std::vector<std::string> all_needs() {
  std::vector<std::string> names = plain_needs();
  for (const Form& form : kForms) names.emplace_back(form.shown);
  return names;
}

bool is_need(const std::string& need) {
  const std::vector<std::string> plain = plain_needs();
  return numbered_need(need).has_value() || std::ranges::find(plain, need) != plain.end();
}

bool is_gpu_need(const std::string& need) {
  std::smatch match;
  if (const Form* form = form_of(need, match)) return form->of == Of::gpu;
  return std::ranges::any_of(
      kPlain, [&](const Plain& plain) { return plain.name == need && plain.of == Of::gpu; });
}

}  // namespace gauntlet::lab::inline targets
