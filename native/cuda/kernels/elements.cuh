// What generated kernels stand on. NVRTC compiles this text in front of a kernel's own, the generated functions in their place.
#pragma once

using Index = long long;

constexpr int THREADS = 256;
constexpr int MAX_RANK = 16;

/** Arrays of no elements do not exist. */
template <int COUNT>
constexpr int AT_LEAST_ONE = COUNT > 0 ? COUNT : 1;

// ops without an intrinsic of their own. Names with an underscore: no rule can name a buffer so.
template <typename T>
__device__ __forceinline__ T opt_max(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
__device__ __forceinline__ T opt_min(T a, T b) {
  return b < a ? b : a;
}
__device__ __forceinline__ float opt_abs(float a) { return fabsf(a); }
__device__ __forceinline__ double opt_abs(double a) { return fabs(a); }

// What the definitions of functions are made of.
/** -a where b has the sign bit. */
__device__ __forceinline__ double opt_flipsign(double a, double b) { return __double_as_longlong(b) < 0 ? -a : a; }
/** 2^n: adding this leaves the exponent's bits at the bottom. */
__device__ __forceinline__ double opt_power2(double n) {
  return __longlong_as_double(static_cast<long long>(static_cast<unsigned long long>(__double_as_longlong(__dadd_rn(n, 0x1.8p52 + 1023))) << 52));
}
__device__ __forceinline__ float opt_power2(float n) {
  return __int_as_float(static_cast<int>(static_cast<unsigned>(__float_as_int(__fadd_rn(n, 0x1.8p23f + 127))) << 23));
}
// x = 2^k m with m from sqrt(1/2) on, told apart by upper words.
constexpr int SQRT_HALF = 0x3fe6a09e, TO_ONE = 0x3ff00000 - SQRT_HALF;
/** k. */
__device__ __forceinline__ double opt_exponent(double x) {
  return static_cast<double>((static_cast<int>(__double_as_longlong(x) >> 32) - SQRT_HALF) >> 20);
}
/** m. */
__device__ __forceinline__ double opt_significand(double x) {
  const long long bits = __double_as_longlong(x);
  const long long upper = ((static_cast<int>(bits >> 32) + TO_ONE) & 0xfffff) + SQRT_HALF;
  return __longlong_as_double(upper << 32 | (bits & 0xffffffffll));
}

#include "functions.cuh"

template <int COUNT>
struct Scalars {
  double values[AT_LEAST_ONE<COUNT>];
};

/** Where the scalars of a rule come from: by value, or from memory in a recorded step, whose arguments stay as they are. */
template <typename T, int COUNT>
struct Given {
  const double* replay;
  /** Bit s: scalar s is the address of an element. */
  Index onDevice;
  Scalars<COUNT> values;

  __device__ __forceinline__ T at(int slot) const {
    const double given = replay != nullptr ? replay[slot] : values.values[slot];
    if (onDevice >> slot & 1) return *reinterpret_cast<const T*>(__double_as_longlong(given));
    if constexpr (sizeof(T) == 4) return __double2float_rn(given);
    else return given;
  }
};

/** 128 bits: the widest load and store. */
template <typename T>
struct alignas(16) Pack {
  static constexpr int WIDTH = 16 / sizeof(T);
  T values[WIDTH];
};

/** The compiler may use the instructions of global memory for this pointer, which came out of a table. */
template <typename T>
__device__ __forceinline__ T* global(void* pointer) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(pointer));
#endif
  return static_cast<T*>(pointer);
}

template <typename T>
__device__ __forceinline__ bool isPacked(const T* pointer) {
  return reinterpret_cast<unsigned long long>(pointer) % sizeof(Pack<T>) == 0;
}

/** One row of a launch's table: a stretch of one tensor in each of its buffers, short enough for 32-bit
 * offsets from 64-bit addresses, which saves registers. */
template <int BUFFERS>
struct Chunk {
  void* buffers[BUFFERS];
  Index length;
};

/** Calls update(elements of all buffers) in place for every element of every chunk; bit b of WRITES: buffer b is stored. */
template <typename T, int BUFFERS, unsigned WRITES, typename Update>
__device__ __forceinline__ void forEachElement(const Chunk<BUFFERS>* chunks, Index count, Update update) {
  constexpr int WIDTH = Pack<T>::WIDTH;
  for (Index c = blockIdx.x; c < count; c += gridDim.x) {
    T* buffers[BUFFERS];
    bool packed = true;
#pragma unroll
    for (int b = 0; b < BUFFERS; b++) {
      buffers[b] = global<T>(chunks[c].buffers[b]);
      packed = packed && isPacked(buffers[b]);
    }
    const int length = static_cast<int>(chunks[c].length);
    const int packs = packed ? length / WIDTH : 0;
    for (int i = threadIdx.x; i < packs; i += THREADS) {
      Pack<T> pack[BUFFERS];
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) pack[b] = reinterpret_cast<const Pack<T>*>(buffers[b])[i];
#pragma unroll
      for (int w = 0; w < WIDTH; w++) {
        T element[BUFFERS];
#pragma unroll
        for (int b = 0; b < BUFFERS; b++) element[b] = pack[b].values[w];
        update(element);
#pragma unroll
        for (int b = 0; b < BUFFERS; b++) pack[b].values[w] = element[b];
      }
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) {
        if (WRITES >> b & 1) reinterpret_cast<Pack<T>*>(buffers[b])[i] = pack[b];
      }
    }
    for (int i = packs * WIDTH + threadIdx.x; i < length; i += THREADS) {
      T element[BUFFERS];
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) element[b] = buffers[b][i];
      update(element);
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) {
        if (WRITES >> b & 1) buffers[b][i] = element[b];
      }
    }
  }
}

// How a slice is stored, in four bits: STORED_FORMATS of packages/kernels-cuda/src/rule-arguments.ts.
constexpr int STORED_BF16 = 1, STORED_F16 = 2, STORED_NOWHERE = 3, STORED_Q8 = 4, STORED_UQ8 = 5, STORED_BF16X = 6, STORED_BF16R = 7, STORED_F16R = 8;

/** Of all buffers' formats that of one. */
__device__ __forceinline__ int formatAt(Index formats, int b) { return static_cast<int>(formats >> 4 * b & 15); }
__device__ __forceinline__ bool isCoded(int format) { return format == STORED_Q8 || format == STORED_UQ8; }
__device__ __forceinline__ bool isRandom(int format) { return format >= STORED_BF16R; }

__device__ __forceinline__ float opt_from_half(unsigned bits) {
  const unsigned sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return __int_as_float(static_cast<int>(sign | 0x7f800000u | magnitude << 13));
  if (magnitude >= 0x0400u) return __int_as_float(static_cast<int>(sign | ((magnitude << 13) + 0x38000000u)));
  const float subnormal = static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

/** To nearest even. Adding 0.5, whose last place is that of subnormal halves, rounds to them. */
__device__ __forceinline__ unsigned opt_to_half(float value) {
  const auto bits = static_cast<unsigned>(__float_as_int(value));
  const unsigned sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // from 65520 on
  if (magnitude >= 0x38800000u) return sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  return sign | static_cast<unsigned>(__float_as_int(__fadd_rn(fabsf(value), 0.5f)) - 0x3f000000);
}

/** To nearest even; a NaN stays one. */
__device__ __forceinline__ unsigned opt_to_bfloat(float value) {
  const auto bits = static_cast<unsigned>(__float_as_int(value));
  if (value != value) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

__device__ __forceinline__ float loadStored(const void* buffer, int i, int format) {
  if (format == 0) return static_cast<const float*>(buffer)[i];
  const unsigned bits = static_cast<const unsigned short*>(buffer)[i];
  return format == STORED_BF16 || format == STORED_BF16R ? __int_as_float(static_cast<int>(bits << 16)) : opt_from_half(bits);
}

__device__ __forceinline__ void storeStored(void* buffer, int i, int format, float value) {
  if (format == 0) static_cast<float*>(buffer)[i] = value;
  else static_cast<unsigned short*>(buffer)[i] = static_cast<unsigned short>(format == STORED_BF16 ? opt_to_bfloat(value) : opt_to_half(value));
}

// What is done to a gradient before a rule sees it, in three bits each: REWRITES of packages/kernels-cuda/src/rule-arguments.ts.
constexpr int MAX_REWRITES = 6;
/** The last scalars of launches that round at random. */
constexpr int KEYS = 2;
constexpr int REWRITE_SCALE = 1, REWRITE_CLAMP = 2, REWRITE_L1 = 3, REWRITE_L2 = 4, REWRITE_GUARD = 5;

/** The rewrites of a launch, their scalars after those of the rule. */
struct Rewrites {
  int ops[MAX_REWRITES];
  float by[MAX_REWRITES];

  template <int COUNT>
  __device__ __forceinline__ Rewrites(Index packed, const Given<float, COUNT>& given) {
#pragma unroll
    for (int k = 0; k < MAX_REWRITES; k++) {
      ops[k] = static_cast<int>(packed >> 3 * k & 7);
      by[k] = ops[k] == 0 ? 0.0f : given.at(COUNT - KEYS - MAX_REWRITES + k);
    }
  }

  /** A guard above 0 keeps everything as it is. */
  __device__ __forceinline__ bool keepsAll() const {
    bool keeps = false;
#pragma unroll
    for (int k = 0; k < MAX_REWRITES; k++) keeps = keeps || (ops[k] == REWRITE_GUARD && by[k] > 0.0f);
    return keeps;
  }

  __device__ __forceinline__ float gradient(float grad, float param) const {
#pragma unroll
    for (int k = 0; k < MAX_REWRITES; k++) {
      if (ops[k] == REWRITE_SCALE) grad = __fmul_rn(grad, by[k]);
      else if (ops[k] == REWRITE_CLAMP) grad = opt_max(opt_min(grad, by[k]), -by[k]);
      else if (ops[k] == REWRITE_L1) grad = param < 0.0f ? __fsub_rn(grad, by[k]) : 0.0f < param ? __fadd_rn(grad, by[k]) : grad;
      else if (ops[k] == REWRITE_L2) grad = __fmaf_rn(by[k], param, grad);
    }
    return grad;
  }
};

/** What rounds a parameter at random: 16 bits of each element (core's rule/rounding.ts). Keys are read where they are used: they take no registers from rules. */
template <int COUNT>
struct Keys {
  const Given<float, COUNT>& given;
  const bool isDrawn;

  __device__ __forceinline__ Keys(Index formats, const Given<float, COUNT>& given) : given(given), isDrawn(isRandom(formatAt(formats, 0))) {}

  /** Of element `i` of a chunk. */
  __device__ __forceinline__ unsigned draw(unsigned long long place, int i) const {
    unsigned x = static_cast<unsigned>(place) + static_cast<unsigned>(i) + static_cast<unsigned>(given.at(COUNT - 2));
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) + static_cast<unsigned>(given.at(COUNT - 1)) + static_cast<unsigned>(place >> 32) * 0x9e3779b9u;
    return (x ^ x >> 15) * 0x846ca68bu >> 16;
  }

  __device__ __forceinline__ void store(void* buffer, int i, int format, float value, unsigned long long place) const {
    const auto bits = static_cast<unsigned>(__float_as_int(value));
    const unsigned drawn = draw(place, i), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    unsigned stored;
    if (format == STORED_BF16R) {
      stored = value != value ? (bits >> 16 | 0x40u) : (bits + drawn) >> 16;
    } else {
      // In 2^-16 parts of the gap: of normals, and of what is below 2^-14.
      const bool isSmall = magnitude < 0x38800000u;
      const unsigned small = isSmall ? static_cast<unsigned>(static_cast<int>(__fmul_rn(fabsf(value), 0x1p40f))) : 0u;
      const unsigned parts = isSmall ? small : (magnitude - 0x38000000u) << 3;
      stored = sign | (magnitude > 0x7f800000u ? 0x7e00u : magnitude >= 0x47800000u ? 0x7c00u : (parts + drawn) >> 16);
    }
    static_cast<unsigned short*>(buffer)[i] = static_cast<unsigned short>(stored);
  }
};

/** The same for buffers that are stored as `formats` says, and one more that mirrors the first: a kernel of a rule serves all of them. */
template <int BUFFERS, unsigned WRITES, int COUNT, typename Update>
__device__ __forceinline__ void forEachStored(const Chunk<BUFFERS + 1>* chunks, Index count, Index formats, const Rewrites& rewrites, const Keys<COUNT>& draws, Update update) {
  if (rewrites.keepsAll()) return;
  const int mirror = formatAt(formats, BUFFERS);
  for (Index c = blockIdx.x; c < count; c += gridDim.x) {
    char* buffers[BUFFERS];
#pragma unroll
    for (int b = 0; b < BUFFERS; b++) buffers[b] = global<char>(chunks[c].buffers[b]);
    void* const last = chunks[c].buffers[BUFFERS];  // a mirror, or the place of what is drawn
    const int length = static_cast<int>(chunks[c].length);
    for (int i = threadIdx.x; i < length; i += THREADS) {
      float element[BUFFERS];
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) element[b] = loadStored(buffers[b], i, formatAt(formats, b));
      if constexpr (BUFFERS > 1) element[1] = rewrites.gradient(element[1], element[0]);
      update(element);
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) {
        if (!(WRITES >> b & 1)) continue;
        if (b == 0 && draws.isDrawn) draws.store(buffers[0], i, formatAt(formats, 0), element[0], reinterpret_cast<unsigned long long>(last));
        else storeStored(buffers[b], i, formatAt(formats, b), element[b]);
      }
      if (mirror != STORED_NOWHERE) storeStored(global<char>(last), i, mirror, element[0]);
    }
  }
}

// Packed state: 256 elements share a scale, which lies before their codes (core's rule/codebook.ts).
constexpr int PACKED_BLOCK = 256, PACKED_BYTES = PACKED_BLOCK + 4;

// State in 24 bits (core's rule/corrected.ts): 16 bits of 256 elements, then a correction of 8 bits for each.
constexpr int CORRECTED_BYTES = 3 * PACKED_BLOCK;

__device__ __forceinline__ float uncorrected(const char* block, int i) {
  const unsigned high = reinterpret_cast<const unsigned short*>(block)[i];
  const auto correction = static_cast<unsigned>(static_cast<int>(reinterpret_cast<const signed char*>(block)[2 * PACKED_BLOCK + i]));
  return __int_as_float(static_cast<int>((high << 16) + (correction << 8)));
}

__device__ __forceinline__ void correct(float value, char* block, int i) {
  const auto bits = static_cast<unsigned>(__float_as_int(value));
  const unsigned w = value != value ? 0x7fc000u : (bits + 0x7fu + (bits >> 8 & 1u)) >> 8;
  reinterpret_cast<unsigned short*>(block)[i] = static_cast<unsigned short>((w + 0x80u) >> 8);
  reinterpret_cast<unsigned char*>(block)[2 * PACKED_BLOCK + i] = static_cast<unsigned char>(w);
}

struct Codebook {
  float edges[8], slope[9], offset[9], cap[9], step[9], start[9];
  bool isSigned;
  float leastScale;

  __device__ __forceinline__ float unpack(const char* block, int i) const {
    const int byte = static_cast<unsigned char>(block[4 + i]);
    const int code = isSigned && byte > 127 ? byte - 256 : byte, n = code < 0 ? -code : code;
    const int e = (__float_as_int(static_cast<float>(isSigned ? 2 * n + 1 : n + 1)) >> 23) - 127;
    const float value = __fadd_rn(__fmul_rn(static_cast<float>(n), step[e]), start[e]);
    return __fmul_rn(code < 0 ? -value : value, *reinterpret_cast<const float*>(block));
  }

  /** Ordered by magnitude, a positive one of two above the negative one; 0 for what is not finite. */
  static __device__ __forceinline__ unsigned key(float x) {
    const auto bits = static_cast<unsigned>(__float_as_int(x));
    return (bits & 0x7fffffffu) < 0x7f800000u ? (bits << 1 | bits >> 31) ^ 1u : 0u;
  }

  /** What the block with this largest key is divided by. */
  __device__ __forceinline__ float scale(unsigned largest) const {
    const float magnitude = __int_as_float(static_cast<int>(largest >> 1));
    const bool isPositive = (largest & 1u) != 0;
    return magnitude < leastScale ? 0.0f : isPositive == isSigned ? -magnitude : magnitude;
  }

  __device__ __forceinline__ unsigned char code(float value, float scale) const {
    if (key(value) == 0 || scale == 0.0f) return 0;
    const float x = __fmul_rn(value, __fdiv_rn(1.0f, scale));
    const float magnitude = isSigned ? fabsf(x) : opt_max(x, 0.0f);
    int e = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) e += magnitude >= edges[k] ? 1 : 0;
    const float place = opt_min(__fadd_rn(__fmul_rn(magnitude, slope[e]), offset[e]), cap[e]);
    const int n = static_cast<int>(place);
    if (!isSigned) return static_cast<unsigned char>(n);
    return static_cast<unsigned char>(x < 0.0f ? -n : n < 127 ? n : 127);
  }
};

/** The same where some buffers are packed. A thread has one element of each block, so that a block's largest is found on the way. */
template <int BUFFERS, unsigned WRITES, int COUNT, typename Update>
__device__ __forceinline__ void forEachPacked(const Chunk<BUFFERS + 1>* chunks, Index count, Index formats, const Codebook* books, const Rewrites& rewrites, const Keys<COUNT>& draws, Update update) {
  static_assert(THREADS == PACKED_BLOCK);
  constexpr int PARTS = 16;
  __shared__ unsigned keys[BUFFERS][THREADS], partial[BUFFERS][PARTS];
  if (rewrites.keepsAll()) return;
  const int mirror = formatAt(formats, BUFFERS), lane = threadIdx.x;
  for (Index c = blockIdx.x; c < count; c += gridDim.x) {
    char* buffers[BUFFERS];
#pragma unroll
    for (int b = 0; b < BUFFERS; b++) buffers[b] = global<char>(chunks[c].buffers[b]);
    void* const* const last = chunks[c].buffers + BUFFERS;  // of a mirror, or the place of what is drawn: read where it is used
    const int length = static_cast<int>(chunks[c].length);
    for (int start = 0; start < length; start += THREADS) {
      const int i = start + lane;
      const bool isInside = i < length;
      const Index block = static_cast<Index>(start / PACKED_BLOCK) * PACKED_BYTES;
      const Index corrected = static_cast<Index>(start / PACKED_BLOCK) * CORRECTED_BYTES;
      float element[BUFFERS];
      if (isInside) {
#pragma unroll
        for (int b = 0; b < BUFFERS; b++) {
          const int format = formatAt(formats, b);
          if (format == STORED_BF16X) element[b] = uncorrected(buffers[b] + corrected, lane);
          else if (isCoded(format)) element[b] = books[format - STORED_Q8].unpack(buffers[b] + block, lane);
          else element[b] = loadStored(buffers[b], i, format);
        }
        if constexpr (BUFFERS > 1) element[1] = rewrites.gradient(element[1], element[0]);
        update(element);
      }
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) keys[b][lane] = isInside ? Codebook::key(element[b]) : 0u;
      __syncthreads();
      if (lane < PARTS) {
#pragma unroll
        for (int b = 0; b < BUFFERS; b++) {
          unsigned most = 0;
          for (int k = 0; k < THREADS / PARTS; k++) most = opt_max(most, keys[b][lane + k * PARTS]);
          partial[b][lane] = most;
        }
      }
      __syncthreads();
      if (!isInside) continue;
#pragma unroll
      for (int b = 0; b < BUFFERS; b++) {
        const int format = formatAt(formats, b);
        if (!(WRITES >> b & 1)) continue;
        if (b == 0 && draws.isDrawn) {
          draws.store(buffers[0], i, format, element[0], reinterpret_cast<unsigned long long>(*last));
          continue;
        }
        if (format == STORED_BF16X) {
          correct(element[b], buffers[b] + corrected, lane);
          continue;
        }
        if (!isCoded(format)) {
          storeStored(buffers[b], i, format, element[b]);
          continue;
        }
        unsigned most = 0;
        for (int k = 0; k < PARTS; k++) most = opt_max(most, partial[b][k]);
        const Codebook& book = books[format - STORED_Q8];
        const float scale = book.scale(most);
        if (lane == 0) *reinterpret_cast<float*>(buffers[b] + block) = scale;
        reinterpret_cast<unsigned char*>(buffers[b] + block)[4 + lane] = book.code(element[b], scale);
      }
      if (mirror != STORED_NOWHERE) storeStored(global<char>(*last), i, mirror, element[0]);
    }
  }
}

/** Where the inputs of a map lie and how they are walked. rank 0: input k is dense (step 1) or one element (step 0). */
template <int INPUTS>
struct Walk {
  const void* inputs[AT_LEAST_ONE<INPUTS>];
  Index steps[AT_LEAST_ONE<INPUTS>];
  Index size;
  Index rank;
  Index shape[MAX_RANK];
  Index strides[AT_LEAST_ONE<INPUTS>][MAX_RANK];
};

template <typename T, int INPUTS, typename Compute>
__device__ __forceinline__ void mapDense(const Walk<INPUTS>& walk, T* output, Compute compute) {
  constexpr int WIDTH = Pack<T>::WIDTH;
  const Index first = static_cast<Index>(blockIdx.x) * THREADS + threadIdx.x, stride = static_cast<Index>(gridDim.x) * THREADS;
  const T* inputs[AT_LEAST_ONE<INPUTS>] = {};
  bool packed = isPacked(output);
#pragma unroll
  for (int k = 0; k < INPUTS; k++) {
    inputs[k] = static_cast<const T*>(walk.inputs[k]);
    packed = packed && (walk.steps[k] == 0 || isPacked(inputs[k]));
  }
  const Index packs = packed ? walk.size / WIDTH : 0;
  for (Index i = first; i < packs; i += stride) {
    Pack<T> pack[AT_LEAST_ONE<INPUTS>], result;
#pragma unroll
    for (int k = 0; k < INPUTS; k++) {
      if (walk.steps[k] != 0) pack[k] = reinterpret_cast<const Pack<T>*>(inputs[k])[i];
      else
        for (int w = 0; w < WIDTH; w++) pack[k].values[w] = inputs[k][0];
    }
#pragma unroll
    for (int w = 0; w < WIDTH; w++) {
      T element[AT_LEAST_ONE<INPUTS>];
#pragma unroll
      for (int k = 0; k < INPUTS; k++) element[k] = pack[k].values[w];
      result.values[w] = compute(element);
    }
    reinterpret_cast<Pack<T>*>(output)[i] = result;
  }
  for (Index i = packs * WIDTH + first; i < walk.size; i += stride) {
    T element[AT_LEAST_ONE<INPUTS>];
#pragma unroll
    for (int k = 0; k < INPUTS; k++) element[k] = inputs[k][walk.steps[k] * i];
    output[i] = compute(element);
  }
}

/** Integer: 32 bits where the size allows, because 64-bit division is slow. */
template <typename Integer, typename T, int INPUTS, typename Compute>
__device__ __forceinline__ void mapStrided(const Walk<INPUTS>& walk, T* output, Compute compute) {
  const int rank = static_cast<int>(walk.rank);
  for (Index i = static_cast<Index>(blockIdx.x) * THREADS + threadIdx.x; i < walk.size; i += static_cast<Index>(gridDim.x) * THREADS) {
    Index offsets[AT_LEAST_ONE<INPUTS>] = {};
    auto rest = static_cast<Integer>(i);
    for (int d = rank - 1; d >= 0; d--) {
      const auto extent = static_cast<Integer>(walk.shape[d]);
      const Index at = rest % extent;
      rest /= extent;
#pragma unroll
      for (int k = 0; k < INPUTS; k++) offsets[k] += at * walk.strides[k][d];
    }
    T element[AT_LEAST_ONE<INPUTS>];
#pragma unroll
    for (int k = 0; k < INPUTS; k++) element[k] = static_cast<const T*>(walk.inputs[k])[offsets[k]];
    output[i] = compute(element);
  }
}

/** output[i] = compute(the elements of all inputs at i). */
template <typename T, int INPUTS, typename Compute>
__device__ __forceinline__ void mapElements(const Walk<INPUTS>& walk, T* output, Compute compute) {
  if (walk.rank == 0) mapDense<T, INPUTS>(walk, output, compute);
  else if (walk.size < 1ll << 31) mapStrided<unsigned, T, INPUTS>(walk, output, compute);
  else mapStrided<Index, T, INPUTS>(walk, output, compute);
}
