#include "pool.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

#if !defined(_WIN32)
#include <csignal>
#endif
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace opt {
namespace {

constexpr int MAX_THREADS = 256;
// The gap between two launches of a training loop, and about what a wake-up costs. After it a thread sleeps.
constexpr std::chrono::microseconds ALERT{100};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// A cache line of its own, so that threads do not disturb each other.
struct alignas(64) Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

/**
 * Keeps the pool's threads off the processor that the calling thread runs on. The scheduler may well wake a thread there
 * while another processor idles; it then never runs, because the caller does not stop until all work is done.
 */
class Placement {
 public:
#if defined(__linux__)
  void add(std::thread& thread) { threads_[count_++] = {thread.native_handle(), -1}; }

  void keepOff(int workers) {
    const int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE) return;
    bool isNew = false;
    for (int t = 0; t < workers; t++) {
      isNew |= threads_[t].avoided != here;
      threads_[t].avoided = here;
    }
    // The processors of now: they may have been set from outside since.
    cpu_set_t others;
    if (!isNew || sched_getaffinity(0, sizeof others, &others) != 0 || workers >= CPU_COUNT(&others)) return;
    CPU_CLR(here, &others);
    for (int t = 0; t < workers; t++) pthread_setaffinity_np(threads_[t].handle, sizeof others, &others);
  }

 private:
  struct Placed {
    pthread_t handle;
    int avoided;
  };
  Placed threads_[MAX_THREADS];
  int count_ = 0;
#else
  void add(std::thread&) {}
  void keepOff(int) {}
#endif
};

class Pool {
 public:
  // Never destroyed: threads may sleep in it while the process exits.
  static Pool& instance() {
    static Pool* pool = new Pool;
    return *pool;
  }

  bool tryRun(int64_t parts, int threads, Body body, void* context) {
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    while (started_ < threads - 1 && startThread()) {}
    if (threads > started_ + 1) threads = started_ + 1;
    for (int t = 0; t < threads; t++) {
      shares_[t].next.store(parts * t / threads, std::memory_order_relaxed);
      shares_[t].end = parts * (t + 1) / threads;
    }
    placement_.keepOff(threads - 1);
    threads_ = threads;
    body_ = body;
    context_ = context;
    open_.store(true);
    generation_.fetch_add(1);
    generation_.notify_all();
    work(0);
    // From here no thread enters; those inside finish the parts they took.
    open_.store(false);
    while (inside_.load() != 0) relax();
    return true;
  }

 private:
  bool startThread() {
    const int index = started_ + 1;
#if !defined(_WIN32)
    // Signals are for Node's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
    bool ok = true;
    try {
      const uint32_t seen = generation_.load();
      std::thread thread([this, index, seen] { serve(index, seen); });
      placement_.add(thread);
      thread.detach();
      started_ = index;
    } catch (const std::system_error&) {
      ok = false;
    }
#if !defined(_WIN32)
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    return ok;
  }

  void serve(int index, uint32_t seen) {
    for (;;) {
      if (!seesWork(seen)) generation_.wait(seen);
      seen = generation_.load();
      inside_.fetch_add(1);
      if (open_.load() && index < threads_) work(index);
      inside_.fetch_sub(1);
    }
  }

  /**
   * Watches for work, but not for long; false if no work came. Who has seen it must not wait besides: that tells the
   * standard library of one who sleeps, and the caller pays for a system call that wakes nobody.
   */
  bool seesWork(uint32_t seen) const {
    const auto start = std::chrono::steady_clock::now();
    do {
      for (int spin = 0; spin < 16; spin++) {
        if (generation_.load(std::memory_order_relaxed) != seen) return true;
        relax();
      }
    } while (std::chrono::steady_clock::now() - start < ALERT);
    return false;
  }

  void work(int own) {
    for (int k = 0; k < threads_; k++) {
      Share& share = shares_[(own + k) % threads_];
      for (;;) {
        const int64_t part = share.next.fetch_add(1, std::memory_order_relaxed);
        if (part >= share.end) break;
        body_(context_, part, own);
      }
    }
  }

  std::mutex mutex_;
  int started_ = 0;
  Placement placement_;
  Share shares_[MAX_THREADS];
  int threads_ = 1;
  Body body_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<bool> open_{false};
  std::atomic<int> inside_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
};

}  // namespace

void runParts(int64_t parts, int threads, Body body, void* context) {
  if (threads > parts) threads = static_cast<int>(parts);
  // Busy with another JavaScript thread's launch: this one's own thread does the work.
  if (threads > 1 && Pool::instance().tryRun(parts, threads, body, context)) return;
  for (int64_t part = 0; part < parts; part++) body(context, part, 0);
}

}  // namespace opt
