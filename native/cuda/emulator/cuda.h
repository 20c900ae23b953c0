// The part of CUDA C++ that our kernels use, for a C++ compiler: threads of a block are fibers that take turns at __syncthreads.
#pragma once
#include <cstdint>
#include <cstring>
// C's own: what libstdc++ adds to it takes longer to read than a kernel.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct Dimensions {
  unsigned x;
};
// Kernels compiled at run time are libraries of their own, which find these here.
#define OPT_SHARED __attribute__((visibility("default")))
OPT_SHARED extern Dimensions threadIdx, blockIdx, blockDim, gridDim;
OPT_SHARED void __syncthreads();
[[noreturn]] OPT_SHARED void badLaunch(const char* problem);

/**
 * All threads of a block come here together, as our kernels do; those past the last lane keep their own. They go on in their order:
 * when one writes its next value, the lane that reads this one has gone on.
 */
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by) {
  static T values[1024];
  if (mask != 0xffffffffu || blockDim.x % 32 != 0) badLaunch("lanes are missing in a shuffle");
  values[threadIdx.x] = value;
  __syncthreads();
  return threadIdx.x % 32 + by < 32 ? values[threadIdx.x + by] : value;
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __double2float_rn(double a) { return static_cast<float>(a); }

template <typename To, typename From>
To sameBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float __int_as_float(int bits) { return sameBits<float>(bits); }
inline int __float_as_int(float value) { return sameBits<int>(value); }
inline double __longlong_as_double(long long bits) { return sameBits<double>(bits); }
inline long long __double_as_longlong(double value) { return sameBits<long long>(value); }

/** A kernel under its name, called with its arguments packed as a launch packs them. */
using PackedKernel = void (*)(const unsigned char* arguments, size_t bytes);

struct Registration {
  OPT_SHARED Registration(const char* name, PackedKernel kernel);
};

template <auto KERNEL>
struct Packed;

template <typename... Types, void (*KERNEL)(Types...)>
struct Packed<KERNEL> {
  struct Call {
    Call(Types... arguments) { KERNEL(arguments...); }
  };

  static void call(const unsigned char* arguments, size_t bytes) {
    if (bytes != (sizeof(Types) + ... + 0)) badLaunch("the arguments are not of the kernel's size");
    const auto next = [&]<typename T>() {
      static_assert(sizeof(T) % 8 == 0);
      T value;
      std::memcpy(&value, arguments, sizeof value);
      arguments += sizeof value;
      return value;
    };
    // Braces: one after the other.
    Call{next.template operator()<Types>()...};
  }
};
