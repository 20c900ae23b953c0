// The one native thread that owns MPI (MPI_THREAD_FUNNELED): it carries out what JavaScript asks for and tells it what has ended.
#pragma once
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport.h"

namespace opt {

class Owner {
 public:
  /** `wake` is called by the thread when `take` has something new. */
  Owner(std::unique_ptr<Transport> transport, size_t piece, std::function<void()> wake);

  void post(const Message& message);
  /** All that is sent leaves; then the others are told, and `id` is done. */
  void close(uint32_t id);
  /** MPI_Abort. */
  void abort(int code);
  /** Waits until the thread has ended, `seconds` at most. True if it has. */
  bool join(double seconds);
  /** Whether JavaScript computes meanwhile: the thread then leaves the processor to it, and moves messages now and then. */
  void setComputing(bool is) { isComputing = is; }
  /** What has ended since the last time. The first is of MPI_Init, with id 0. */
  std::vector<Completion> take();
  /** The same, after waiting for anything until then. */
  std::vector<Completion> take(std::chrono::steady_clock::time_point until);

  const Transport& transport() const { return *own; }

 private:
  static void* main(void* self);
  void run();
  void carryOut();
  void tell(std::vector<Completion>&& done);

  std::unique_ptr<Transport> own;
  size_t piece;
  std::function<void()> wake;

  std::mutex mutex;
  std::condition_variable posted, told, finished;
  std::vector<Message> queue;
  std::vector<Completion> ended;
  std::atomic<bool> isComputing = false;
  uint32_t closing = 0;
  int abortCode = 0;
  bool isAborting = false, hasFinished = false;
};

}  // namespace opt
