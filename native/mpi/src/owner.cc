#include "owner.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <stdexcept>
#include <utility>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace opt {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration_cast;
using std::chrono::microseconds;

/** After something moved the next is likely near: the thread asks again at once, then after pauses that grow with the wait. */
constexpr microseconds EAGER{50};
constexpr microseconds SHORTEST{5}, LONGEST{500};
/** Long messages, which libraries cut and move only while they are asked, have no long pauses for the first of these times. */
constexpr size_t LONG = 256 << 10;
constexpr microseconds LONG_EAGER{2000}, LONG_LONGEST{20}, LONG_MOVES_WITHIN{200000};
/** While nothing is under way; what JavaScript asks for wakes the thread. */
constexpr microseconds RESTING{10000};
/** A musl thread has 128 KiB by default, which MPI_Init exceeds. */
constexpr size_t STACK = 8 << 20;

}  // namespace

Owner::Owner(std::unique_ptr<Transport> transport, size_t piece, std::function<void()> wake)
    : own(std::move(transport)), piece(piece), wake(std::move(wake)) {
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, main, this);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) throw std::runtime_error("the system gives no thread");
}

void Owner::post(const Message& message) {
  {
    std::lock_guard lock(mutex);
    queue.push_back(message);
  }
  posted.notify_one();
}

void Owner::close(uint32_t id) {
  {
    std::lock_guard lock(mutex);
    closing = id;
  }
  posted.notify_one();
}

void Owner::abort(int code) {
  {
    std::lock_guard lock(mutex);
    isAborting = true;
    abortCode = code;
  }
  posted.notify_one();
}

bool Owner::join(double seconds) {
  std::unique_lock lock(mutex);
  return finished.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return hasFinished; });
}

std::vector<Completion> Owner::take() {
  std::lock_guard lock(mutex);
  return std::exchange(ended, {});
}

std::vector<Completion> Owner::take(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex);
  told.wait_until(lock, until, [this] { return !ended.empty(); });
  return std::exchange(ended, {});
}

void Owner::tell(std::vector<Completion>&& done) {
  if (done.empty()) return;
  bool isFirst;
  {
    std::lock_guard lock(mutex);
    isFirst = ended.empty();
    ended.insert(ended.end(), std::make_move_iterator(done.begin()), std::make_move_iterator(done.end()));
  }
  told.notify_one();
  if (isFirst) wake();
}

void* Owner::main(void* self) {
  auto* owner = static_cast<Owner*>(self);
#if defined(__linux__)
  prctl(PR_SET_NAME, "opt-mpi");
  prctl(PR_SET_TIMERSLACK, 1000);  // pauses of 5 microseconds are meant so
#endif
  owner->run();
  std::lock_guard lock(owner->mutex);
  owner->hasFinished = true;
  owner->finished.notify_all();
  return nullptr;
}

void Owner::run() {
  try {
    own->init(piece);
    tell({{0, Outcome::moved, 0, ""}});
  } catch (const std::exception& error) {
    tell({{0, Outcome::failed, 0, error.what()}});
    return;
  }
  try {
    carryOut();
  } catch (const std::exception& error) {
    // What is under way is lost; whoever waits for it is told, and ends the job.
    std::unique_lock lock(mutex);
    while (!isAborting) {
      std::vector<Completion> lost;
      for (const Message& message : std::exchange(queue, {})) lost.push_back({message.id, Outcome::failed, 0, error.what()});
      if (closing != 0) lost.push_back({closing, Outcome::failed, 0, error.what()});
      const bool isClosing = std::exchange(closing, 0) != 0;
      lock.unlock();
      lost.push_back({0, Outcome::failed, 0, error.what()});
      tell(std::move(lost));
      if (isClosing) return;
      lock.lock();
      posted.wait(lock);
    }
    own->abort(abortCode);
  }
}

void Owner::carryOut() {
  auto lastMove = Clock::now();
  std::vector<Message> posts;
  std::vector<Completion> done;
  uint32_t closeId = 0;
  bool hasLeft = false;
  while (!own->hasEnded()) {
    {
      std::lock_guard lock(mutex);
      std::swap(posts, queue);
      closeId = closing;
      if (isAborting) return own->abort(abortCode);
    }
    for (const Message& message : posts) own->post(message);
    const bool hasMoved = own->progress(done);
    if (hasMoved || !posts.empty()) lastMove = Clock::now();
    posts.clear();
    if (closeId != 0 && !hasLeft && !own->isNeeded()) {
      own->leave();
      hasLeft = true;
      done.push_back({closeId, Outcome::moved, 0, ""});
    }
    tell(std::exchange(done, {}));

    const auto idle = duration_cast<microseconds>(Clock::now() - lastMove);
    const bool isLong = own->load() > LONG && idle < LONG_MOVES_WITHIN;
    if (own->isBusy() && !isComputing && idle < (isLong ? LONG_EAGER : EAGER)) {
      sched_yield();
      continue;
    }
    const auto pause = own->isBusy() && isComputing ? LONGEST : own->isBusy() ? std::clamp(idle / 16, SHORTEST, isLong ? LONG_LONGEST : LONGEST) : RESTING;
    std::unique_lock lock(mutex);
    posted.wait_for(lock, pause, [&] { return !queue.empty() || isAborting || closing != closeId; });
  }
  own->finalize();
}

}  // namespace opt
