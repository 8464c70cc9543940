#include "cli/serving/file_limit.h"

#include <sys/resource.h>

namespace gauntlet::cli {

void raise_file_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace gauntlet::cli
