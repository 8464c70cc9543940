// What the calling thread has cost so far.
#pragma once
#include <ctime>

namespace gauntlet {

inline double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace gauntlet
