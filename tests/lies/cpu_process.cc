// Sides on a CPU that hurt the process they run in, or speak for it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/lies/lie.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies {
namespace {

constexpr const char* kForged =
    "\xff\xfe\x01 {\"type\": \"measurement\", \"ok\": true, \"blocks\": []}\n";

lab::Side crashes(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    volatile float* volatile nowhere = nullptr;
    *nowhere = p.out[0];
  };
}

lab::Side exits(const Params&, const lab::Cpu&) {
  return [] { std::exit(0); };
}

lab::Side hangs(const Params&, const lab::Cpu&) {
  return [] {
    while (true) pause();
  };
}

lab::Side allocates(const Params&, const lab::Cpu&) {
  return [] {
    std::vector<std::vector<char>> hoard;
    while (true) hoard.emplace_back(std::size_t{16} << 20, 'x');
  };
}

lab::Side prints_garbage(const Params& p, const lab::Cpu&) {
  static const bool flooded = [] {
    const std::string block(4096, '#');
    for (int i = 0; i < 256; ++i) std::fputs(block.c_str(), stdout);
    return std::fputs("\nworking\n", stdout) >= 0;
  }();
  return [p, written = flooded ? 0 : 1]() mutable {
    if (++written > 20) return scale(p);
    std::fputs(kForged, stderr);
    scale(p);
  };
}

lab::Side prints_forever(const Params&, const lab::Cpu&) {
  return [] {
    while (true)
      std::puts("and on, and on, and on, and on, and on, and on, and on, and on, and on");
  };
}

/// Reports a thousandfold speedup in the worker's name to whoever listens on any descriptor.
lab::Side forges_report(const Params&, const lab::Cpu&) {
  return [] {
    const std::string report =
        "\n{\"type\":\"measurement\",\"ok\":true,\"reason\":\"\",\"side\":\"\",\"blocks\":[[[1000,"
        "1000],"
        "[1,1]]],\"sides\":[],\"set_bytes\":0,\"sets\":1,\"verification\":{},\"conditions\":{}}\n";
    for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, report.data(), report.size());
    _exit(0);
  };
}

}  // namespace

std::vector<CpuLie<Params>> cpu_process_lies() {
  return {{"crashes", crashes},
          {"exits", exits},
          {"hangs", hangs},
          {"allocates", allocates},
          {"prints_garbage", prints_garbage},
          {"prints_forever", prints_forever},
          {"forges_report", forges_report}};
}

}  // namespace gauntlet::lies
