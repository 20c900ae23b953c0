// Numbers shared with packages/kernels-cpu/src/opcode.ts, in the same order.
#pragma once

namespace opt {

enum class Opcode {
  LIST = -1,
  RULE,
  PROGRAM,
  REDUCE,
  SUM_SQUARES,
  MATMUL,
  COPY,
  GATHER,
  SCATTER_ADD,
  ROWS,
  UNFOLD,
  FOLD,
  MAX_POOL_2D,
  MAX_POOL_2D_GRAD,
  ATTENTION,
  ATTENTION_GRAD,
  BATCH_NORM,
  BATCH_NORM_GRAD,
  LSTM,
  LSTM_GRAD,
};

// How commands are written. One more whenever a command is read otherwise than before.
constexpr int COMMAND_FORMAT = 8;

enum class Status { OK, BAD_COMMAND, OUT_OF_MEMORY };

}  // namespace opt
