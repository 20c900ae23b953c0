#include "fibers.h"

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cuda.h"

Dimensions threadIdx, blockIdx, blockDim, gridDim;

// Saves what the System V calling convention asks a function to keep, and goes on where `to` was saved.
extern "C" void switchStacks(void** from, void* to);
asm(R"(
.text
.local switchStacks
switchStacks:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");

namespace {

constexpr size_t STACK = 1 << 16;

struct Fiber {
  /** Stacks end at different lines of the cache: 256 of them at one place would push each other out. */
  void** top;
  void* at = nullptr;
  bool done = true;

  explicit Fiber(size_t number) : top(reinterpret_cast<void**>(static_cast<char*>(std::aligned_alloc(64, STACK)) + STACK - number % 64 * 192)) {}
};

std::vector<Fiber> fibers;
void* scheduler = nullptr;
const std::function<void()>* current = nullptr;

void enter() {
  (*current)();
  Fiber& own = fibers[threadIdx.x];
  own.done = true;
  switchStacks(&own.at, scheduler);
}

void start(Fiber& fiber) {
  void** top = fiber.top;
  // Below a return address of its own the stack is as a call leaves it: 8 past a multiple of 16.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(enter);
  for (int saved = 0; saved < 6; saved++) *--top = nullptr;
  fiber.at = top;
  fiber.done = false;
}

/** Until the next barrier, or the end. */
void go(unsigned thread) {
  threadIdx.x = thread;
  switchStacks(&scheduler, fibers[thread].at);
}

}  // namespace

void __syncthreads() {
  Fiber& own = fibers[threadIdx.x];
  switchStacks(&own.at, scheduler);
}

void runBlock(unsigned threads, const std::function<void()>& body) {
  while (fibers.size() < threads) fibers.emplace_back(fibers.size());
  blockDim.x = threads;
  current = &body;
  unsigned finished = 0;
  for (unsigned t = 0; t < threads; t++) {
    // A thread without a barrier leaves its stack, which the cache holds, to the next one.
    if (t > 0 && fibers[t - 1].done) std::swap(fibers[t - 1].top, fibers[t].top);
    start(fibers[t]);
    go(t);
    finished += fibers[t].done ? 1 : 0;
  }
  while (finished < threads) {
    if (finished > 0) badLaunch("some threads ended while others wait at a barrier");
    for (unsigned t = 0; t < threads; t++) {
      go(t);
      finished += fibers[t].done ? 1 : 0;
    }
  }
}
