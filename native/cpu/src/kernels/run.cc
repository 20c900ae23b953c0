// The entry point of one instruction set.
#include <new>

#include "kernels.h"
#include "kernels/command.h"

namespace opt::OPT_ISA {

namespace {

/** Commands one after the other, up to one that fails. Each says first how long it is, and which of its numbers lie elsewhere until it is run. */
Status runList(Command& list) {
  const int64_t count = list.integer();
  for (int64_t i = 0; i < count; i++) {
    const int64_t length = list.integer(), loads = list.integer();
    auto* command = const_cast<double*>(list.numbers(length));
    for (int64_t k = 0; k < loads; k++) {
      double& number = command[list.integer()];
      const bool isDouble = list.flag();
      const double* place = list.pointer<const double>();
      number = isDouble ? *place : *reinterpret_cast<const float*>(place);
    }
    const Status status = run(command);
    if (status != Status::OK) return status;
  }
  return Status::OK;
}

}  // namespace

Status run(const double* numbers) {
  Command command(numbers);
  const auto opcode = static_cast<Opcode>(command.integer());
  command.threads = static_cast<int>(command.integer());
  switch (opcode) {
    case Opcode::LIST: return runList(command);
    case Opcode::RULE: return runRule(command);
    case Opcode::PROGRAM: return runProgram(command);
    case Opcode::REDUCE: return runReduce(command);
    case Opcode::SUM_SQUARES: return runSumSquares(command);
    case Opcode::MATMUL: return runMatmul(command);
    case Opcode::COPY: return runCopy(command);
    case Opcode::GATHER: return runGather(command);
    case Opcode::SCATTER_ADD: return runScatterAdd(command);
    case Opcode::ROWS: return runRows(command);
    case Opcode::UNFOLD: return runUnfold(command);
    case Opcode::FOLD: return runFold(command);
    case Opcode::MAX_POOL_2D: return runMaxPool2d(command);
    case Opcode::MAX_POOL_2D_GRAD: return runMaxPool2dGrad(command);
    case Opcode::ATTENTION: return runAttention(command);
    case Opcode::ATTENTION_GRAD: return runAttentionGrad(command);
    case Opcode::BATCH_NORM: return runBatchNorm(command);
    case Opcode::BATCH_NORM_GRAD: return runBatchNormGrad(command);
    case Opcode::LSTM: return runLstm(command);
    case Opcode::LSTM_GRAD: return runLstmGrad(command);
  }
  return Status::BAD_COMMAND;
}

}  // namespace opt::OPT_ISA
