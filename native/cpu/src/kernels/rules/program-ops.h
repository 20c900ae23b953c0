// One loop per op over a block. The result may lie in the place of an operand.
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/functions.h"
#include "kernels/loops.h"
#include "protocol.h"

namespace opt::OPT_ISA {

template <typename T>
using BlockOp = void (*)(T* out, const T* a, const T* b, const T* c, int64_t n);

#define OPT_BLOCK_OP(NAME, EXPRESSION)                                                                             \
  template <typename T>                                                                                            \
  void NAME(T* out, const T* a, [[maybe_unused]] const T* b, [[maybe_unused]] const T* c, int64_t n) { \
    OPT_INDEPENDENT                                                                                                \
    for (int64_t i = 0; i < n; i++) out[i] = EXPRESSION;                                                           \
  }
OPT_BLOCK_OP(blockAdd, a[i] + b[i])
OPT_BLOCK_OP(blockSub, a[i] - b[i])
OPT_BLOCK_OP(blockMul, a[i] * b[i])
OPT_BLOCK_OP(blockDiv, a[i] / b[i])
OPT_BLOCK_OP(blockNeg, -a[i])
OPT_BLOCK_OP(blockAbs, abs(a[i]))
OPT_BLOCK_OP(blockSqrt, sqrt(a[i]))
OPT_BLOCK_OP(blockFma, fma(a[i], b[i], c[i]))
OPT_BLOCK_OP(blockMax, max(a[i], b[i]))
OPT_BLOCK_OP(blockMin, min(a[i], b[i]))
OPT_BLOCK_OP(blockLess, (a[i] < b[i] ? T(1) : T(0)))
OPT_BLOCK_OP(blockSelect, (a[i] != T(0) ? b[i] : c[i]))
OPT_BLOCK_OP(blockExp, exp(a[i]))
OPT_BLOCK_OP(blockLog, log(a[i]))
OPT_BLOCK_OP(blockTanh, tanh(a[i]))
OPT_BLOCK_OP(blockErf, erf(a[i]))
OPT_BLOCK_OP(blockPow, pow(a[i], b[i]))
OPT_BLOCK_OP(blockLog1p, log1p(a[i]))
OPT_BLOCK_OP(blockExpm1, expm1(a[i]))
#undef OPT_BLOCK_OP

template <typename T>
void blockSin(T* out, const T* a, const T*, const T*, int64_t n) {
  mapInReach(out, a, n, SIN_REACH, [](T x) { return sin(x); }, std::sin);
}

template <typename T>
void blockCos(T* out, const T* a, const T*, const T*, int64_t n) {
  mapInReach(out, a, n, COS_REACH, [](T x) { return cos(x); }, std::cos);
}

#define OPT_ENTRY(NAME) block##NAME<T>,
template <typename T>
constexpr BlockOp<T> BLOCK_OPS[] = {OPT_OPS(OPT_ENTRY)};
#undef OPT_ENTRY

}  // namespace opt::OPT_ISA
