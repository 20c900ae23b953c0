// Strided copy and cast between all pairs of dtypes.
#include "stored.cuh"

struct CopyWalk {
  Index size, rank;
  Index shape[MAX_RANK], sourceStrides[MAX_RANK], targetStrides[MAX_RANK];
};

template <typename Integer, typename From, typename To>
__device__ __forceinline__ void copyStrided(const From* source, To* target, const CopyWalk& walk) {
  for (Index i = firstElement(); i < walk.size; i += elementStride()) {
    Index from = 0, to = 0;
    auto rest = static_cast<Integer>(i);
    for (int d = static_cast<int>(walk.rank) - 1; d >= 0; d--) {
      const auto extent = static_cast<Integer>(walk.shape[d]);
      const Index at = rest % extent;
      rest /= extent;
      from += at * walk.sourceStrides[d];
      to += at * walk.targetStrides[d];
    }
    target[to] = Convert<To, From>::of(source[from]);
  }
}

/** What one load or store moves: narrow elements one by one would leave most of it unused. */
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

template <typename From, typename To>
__device__ __forceinline__ void copyDense(const From* source, To* target, Index size) {
  const bool aligned = reinterpret_cast<unsigned long long>(source) % sizeof(Four<From>) == 0 &&
                       reinterpret_cast<unsigned long long>(target) % sizeof(Four<To>) == 0;
  const Index fours = aligned ? size / 4 : 0;
  for (Index i = firstElement(); i < fours; i += elementStride()) {
    const Four<From> from = reinterpret_cast<const Four<From>*>(source)[i];
    Four<To> to;
#pragma unroll
    for (int k = 0; k < 4; k++) to.values[k] = Convert<To, From>::of(from.values[k]);
    reinterpret_cast<Four<To>*>(target)[i] = to;
  }
  for (Index i = 4 * fours + firstElement(); i < size; i += elementStride()) target[i] = Convert<To, From>::of(source[i]);
}

/** rank 0: both sides are dense. */
template <typename From, typename To>
__device__ void copy(const From* source, To* target, const CopyWalk& walk) {
  if (walk.rank == 0) {
    copyDense(source, target, walk.size);
  } else if (walk.size < 1ll << 31) {
    copyStrided<unsigned>(source, target, walk);
  } else {
    copyStrided<Index>(source, target, walk);
  }
}

#define DEFINE_PAIR(FROM, TO, From, To)                                                                                \
  OPT_KERNEL(copy_##FROM##_##TO)(const From* source, To* target, CopyWalk walk) { copy(source, target, walk); }
#define DEFINE_FROM(FROM, From)                                                                                        \
  DEFINE_PAIR(FROM, f32, From, float)                                                                                  \
  DEFINE_PAIR(FROM, f64, From, double)                                                                                 \
  DEFINE_PAIR(FROM, f16, From, f16)                                                                                    \
  DEFINE_PAIR(FROM, bf16, From, bf16)                                                                                  \
  DEFINE_PAIR(FROM, i32, From, int)                                                                                    \
  DEFINE_PAIR(FROM, u8, From, unsigned char)                                                                           \
  DEFINE_PAIR(FROM, bool, From, boolean)
DEFINE_FROM(f32, float)
DEFINE_FROM(f64, double)
DEFINE_FROM(f16, f16)
DEFINE_FROM(bf16, bf16)
DEFINE_FROM(i32, int)
DEFINE_FROM(u8, unsigned char)
DEFINE_FROM(bool, boolean)
