#include "lab/measure/watch/library_threads.h"

#include <unistd.h>

#include <utility>

namespace gauntlet::lab::inline measure {

LibraryThreads::LibraryThreads(std::shared_ptr<KnownThreads> known)
    : known_(std::move(known)), before_(thread_ids(getpid())) {}

void LibraryThreads::adopt() {
  if (!closed_) leases_.push_back(known_->add_younger_than(before_));
}

void LibraryThreads::close() {
  adopt();
  closed_ = true;
}

}  // namespace gauntlet::lab::inline measure
