// A launch as the TypeScript side writes it: numbers in a row, addresses among them (exact below 2^53).
#pragma once
#include <cstdint>

#include "protocol.h"

namespace opt::OPT_ISA {

/** Numbers of a command, in place. */
struct Numbers {
  int64_t count;
  const double* data;

  double operator[](int64_t i) const { return data[i]; }
};

/** Numbers that are read in order. The build writes the structs of what they say: commands.h. */
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

  /** A count, and so many numbers. */
  Numbers list() {
    const int64_t count = integer();
    return {count, numbers(count)};
  }

 private:
  const double* next_;
};

template <typename T>
inline T* address(double number) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(number));
}

/** The numbers of list `tensors`: how many there are, how many elements come before each and in all, and a record of each. */
struct Tensors {
  explicit Tensors(const Numbers& list) : count(static_cast<int64_t>(list[0])), starts(list.data + 1), records(list.data + 2 + count) {}

  int64_t total() const { return static_cast<int64_t>(starts[count]); }

  /** Calls `body(tensor, from, to)` for elements of tensors between `begin` and `end` of all. Parts meet at multiples of `line`. */
  template <typename Body>
  void forEach(int64_t begin, int64_t end, int64_t line, const Body& body) const {
    int64_t low = 0, high = count;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (starts[middle] <= static_cast<double>(begin) ? low : high) = middle;
    }
    for (int64_t t = low; t < count && starts[t] < static_cast<double>(end); t++) {
      const auto start = static_cast<int64_t>(starts[t]), stop = static_cast<int64_t>(starts[t + 1]);
      const int64_t from = begin <= start ? 0 : (begin - start) / line * line;
      const int64_t to = end >= stop ? stop - start : (end - start) / line * line;
      if (from < to) body(t, from, to);
    }
  }

  int64_t count;
  const double *starts, *records;
};

/** Defines `run` for a struct of both dtypes. */
#define OPT_RUN(FIELDS, KERNEL)                                                              \
  Status run(const FIELDS<float>& given, int threads) { return KERNEL(given, threads); }  \
  Status run(const FIELDS<double>& given, int threads) { return KERNEL(given, threads); }

}  // namespace opt::OPT_ISA
