// Blocks of elements that are stored in 16 bits and computed in float32.
#pragma once
#include "kernels/command.h"
#include "kernels/loops.h"
#include "kernels/stored.h"

namespace opt::OPT_ISA {

template <typename Stored, typename T>
void widenElements(const Stored* from, int64_t n, T* to) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < n; i++) to[i] = static_cast<T>(widen(from[i]));
}

template <typename Stored, typename T>
void narrowElements(const T* from, int64_t n, Stored* to) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < n; i++) to[i] = convert<T, Stored>(from[i]);
}

/** Elements `at` to `at` + n of what is stored at a number's address, as numbers. `format`: a DType of 16 bits. */
template <typename T>
void widenBlock(double format, double start, int64_t at, int64_t n, T* to) {
  if (static_cast<DType>(format) == DType::BF16) widenElements(address<BFloat>(start) + at, n, to);
  else widenElements(address<Half>(start) + at, n, to);
}

/** Numbers as elements `at` to `at` + n of what is stored at an address. */
template <typename T>
void narrowBlock(double format, const T* from, double start, int64_t at, int64_t n) {
  switch (static_cast<DType>(format)) {
    case DType::BF16: return narrowElements(from, n, address<BFloat>(start) + at);
    case DType::F16: return narrowElements(from, n, address<Half>(start) + at);
    default: return narrowElements(from, n, address<T>(start) + at);
  }
}

}  // namespace opt::OPT_ISA
