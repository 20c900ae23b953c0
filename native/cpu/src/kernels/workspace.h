// Scratch memory that a thread keeps from launch to launch, because fresh pages cost more than a small product.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/parallel.h"

namespace opt::OPT_ISA {

/** What is reserved ends where addresses do that nobody may touch: who writes past the end stops there, and changes nobody's memory. */
class Workspace {
 public:
  Workspace() = default;
  ~Workspace() { release(); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /** Aligned to cache lines; null if there is no memory. */
  char* reserve(int64_t bytes) {
    const int64_t size = ceilDivide(bytes, LINE) * LINE;
    if (size > usable_ && !map(size)) return nullptr;
    return start_ + usable_ - size;
  }

  /** Gives back what is too much to keep. */
  void trim() {
    if (usable_ > KEPT) release();
  }

 private:
  static constexpr int64_t LINE = 64, KEPT = 16 << 20;
  // Only addresses, no memory: wide enough that no panel jumps over it.
  static constexpr int64_t FENCE = 64 << 20;

  bool map(int64_t size) {
    release();
    const int64_t page = sysconf(_SC_PAGESIZE), usable = ceilDivide(size, page) * page;
    const auto length = static_cast<size_t>(usable + FENCE);
    void* const block = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return false;
    if (mprotect(block, static_cast<size_t>(usable), PROT_READ | PROT_WRITE) != 0) {
      munmap(block, length);
      return false;
    }
    start_ = static_cast<char*>(block);
    usable_ = usable;
    return true;
  }

  void release() {
    if (start_ != nullptr) munmap(start_, static_cast<size_t>(usable_ + FENCE));
    start_ = nullptr;
    usable_ = 0;
  }

  char* start_ = nullptr;
  int64_t usable_ = 0;
};

}  // namespace opt::OPT_ISA
