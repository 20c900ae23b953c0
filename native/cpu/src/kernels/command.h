// A launch as the TypeScript side writes it: numbers in a row, addresses among them (exact below 2^53).
#pragma once
#include <cstdint>

#include "opcode.h"

namespace opt::OPT_ISA {

class Command {
 public:
  explicit Command(const double* next) : next_(next) {}

  double number() { return *next_++; }
  int64_t integer() { return static_cast<int64_t>(number()); }
  bool flag() { return number() != 0; }
  template <typename T>
  T* pointer() {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(number()));
  }
  /** The next `count` numbers, in place. */
  const double* numbers(int64_t count) {
    const double* start = next_;
    next_ += count;
    return start;
  }

  /** Threads that the launch may use. */
  int threads = 1;

 private:
  const double* next_;
};

template <typename T>
inline T* address(double number) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(number));
}

Status runRule(Command& command);
Status runProgram(Command& command);
Status runReduce(Command& command);
Status runSumSquares(Command& command);
Status runMatmul(Command& command);
Status runCopy(Command& command);
Status runGather(Command& command);
Status runScatterAdd(Command& command);
Status runRows(Command& command);
Status runUnfold(Command& command);
Status runFold(Command& command);
Status runMaxPool2d(Command& command);
Status runMaxPool2dGrad(Command& command);
Status runAttention(Command& command);
Status runAttentionGrad(Command& command);
Status runBatchNorm(Command& command);
Status runBatchNormGrad(Command& command);
Status runLstm(Command& command);
Status runLstmGrad(Command& command);

}  // namespace opt::OPT_ISA
