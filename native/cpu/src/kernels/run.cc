// The entry point of one instruction set.
#include <new>

#include "kernels.h"
#include "kernels/command.h"

namespace opt::OPT_ISA {

Status run(const double* numbers) {
  Command command(numbers);
  const auto opcode = static_cast<Opcode>(command.integer());
  command.threads = static_cast<int>(command.integer());
  switch (opcode) {
    case Opcode::RULE: return runRule(command);
    case Opcode::PROGRAM: return runProgram(command);
    case Opcode::REDUCE: return runReduce(command);
    case Opcode::SUM_SQUARES: return runSumSquares(command);
    case Opcode::MATMUL: return runMatmul(command);
    case Opcode::COPY: return runCopy(command);
    case Opcode::GATHER: return runGather(command);
    case Opcode::SCATTER_ADD: return runScatterAdd(command);
    case Opcode::SOFTMAX: return runSoftmax(command);
    case Opcode::SOFTMAX_GRAD: return runSoftmaxGrad(command);
    case Opcode::LAYER_NORM: return runLayerNorm(command);
    case Opcode::LAYER_NORM_GRAD: return runLayerNormGrad(command);
    case Opcode::CROSS_ENTROPY: return runCrossEntropy(command);
    case Opcode::CROSS_ENTROPY_GRAD: return runCrossEntropyGrad(command);
    case Opcode::UNFOLD: return runUnfold(command);
    case Opcode::FOLD: return runFold(command);
    case Opcode::MAX_POOL_2D: return runMaxPool2d(command);
    case Opcode::MAX_POOL_2D_GRAD: return runMaxPool2dGrad(command);
  }
  return Status::BAD_COMMAND;
}

}  // namespace opt::OPT_ISA
