#include "fibers.h"

#include <cstdint>
#include <cstdlib>
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
  void* stack = std::aligned_alloc(64, STACK);
  void* at = nullptr;
  bool done = true;
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

/** Stacks start at different lines of the cache: 256 of them at one place would push each other out. */
void start(Fiber& fiber, unsigned thread) {
  auto* top = reinterpret_cast<void**>(static_cast<char*>(fiber.stack) + STACK - thread % 64 * 192);
  // Below a return address of its own the stack is as a call leaves it: 8 past a multiple of 16.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(enter);
  for (int saved = 0; saved < 6; saved++) *--top = nullptr;
  fiber.at = top;
  fiber.done = false;
}

}  // namespace

void __syncthreads() {
  Fiber& own = fibers[threadIdx.x];
  switchStacks(&own.at, scheduler);
}

void runBlock(unsigned threads, const std::function<void()>& body) {
  while (fibers.size() < threads) fibers.emplace_back();
  blockDim.x = threads;
  current = &body;
  for (unsigned t = 0; t < threads; t++) start(fibers[t], t);
  for (bool running = true; running;) {
    running = false;
    unsigned finished = 0;
    for (unsigned t = 0; t < threads; t++) {
      if (!fibers[t].done) {
        threadIdx.x = t;
        switchStacks(&scheduler, fibers[t].at);
        running = true;
      }
      finished += fibers[t].done ? 1 : 0;
    }
    if (finished > 0 && finished < threads) badLaunch("some threads ended while others wait at a barrier");
  }
}
