// Splitting loops into parts. Parts depend on the work alone, never on the number of threads: neither do results.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "pool.h"

namespace opt::OPT_ISA {

template <typename T>
inline T smaller(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
inline T larger(T a, T b) {
  return a < b ? b : a;
}

inline int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/** Calls `body(begin, end)` or `body(begin, end, thread)` for ranges of `grain` within 0 to `count`. */
template <typename Loop>
inline void parallelFor(int64_t count, int64_t grain, int threads, const Loop& body) {
  if (count <= 0) return;
  struct Context {
    const Loop& body;
    int64_t count, grain;
  } context{body, count, grain};
  runParts(
      ceilDivide(count, grain), threads,
      [](void* raw, int64_t part, [[maybe_unused]] int thread) {
        const Context& c = *static_cast<const Context*>(raw);
        const int64_t begin = part * c.grain, end = smaller(c.count, begin + c.grain);
        if constexpr (std::is_invocable_v<Loop, int64_t, int64_t, int>) {
          c.body(begin, end, thread);
        } else {
          c.body(begin, end);
        }
      },
      &context);
}

/** Elements per part such that a part is worth handing over, given the cost of one item in elements. */
inline int64_t grainOf(int64_t elementsPerItem) { return larger<int64_t>(1, 16384 / larger<int64_t>(1, elementsPerItem)); }

/** Memory for the time of a launch, taken before its parallel loops because those cannot fail. */
template <typename T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : data_(static_cast<T*>(std::malloc(sizeof(T) * static_cast<size_t>(count + 1)))) {}
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  explicit operator bool() const { return data_ != nullptr; }
  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  T* data_;
};

}  // namespace opt::OPT_ISA
