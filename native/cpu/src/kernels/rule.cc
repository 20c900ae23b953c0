// Launches of the update rules that were compiled ahead: all chunks of all tensors of a group are one loop.
#include "kernels/arithmetic.h"
#include "kernels/command.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

/** The update of elements `begin` to `end` of one tensor. */
template <typename T>
using RuleFunction = void (*)(T* const* buffers, const T* scalars, int64_t begin, int64_t end);

struct Rule {
  RuleFunction<float> f32;
  RuleFunction<double> f64;
};

#include "rules.inc"

// Elements of a part, for rules of a handful of buffers: some 100 KB, a few microseconds.
constexpr int64_t GRAIN = 8192;
// Parts meet at multiples of this within a tensor: two threads never write one cache line of aligned memory.
constexpr int64_t LINE = 16;

template <typename T>
Status launchRule(Command& command, RuleFunction<T> Rule::*function) {
  const RuleFunction<T> update = RULES[command.integer()].*function;
  const int64_t scalarCount = command.integer();
  T scalars[MAX_SCALARS];
  for (int64_t s = 0; s < scalarCount; s++) scalars[s] = static_cast<T>(command.number());
  const int64_t buffers = command.integer();
  const int64_t tensors = command.integer();
  // starts[t] is the number of elements before tensor t, starts[tensors] the total.
  const double* starts = command.numbers(tensors + 1);
  const double* addresses = command.numbers(tensors * buffers);
  parallelFor(static_cast<int64_t>(starts[tensors]), GRAIN, command.threads, [&](int64_t begin, int64_t end) {
    int64_t low = 0, high = tensors;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (starts[middle] <= static_cast<double>(begin) ? low : high) = middle;
    }
    for (int64_t t = low; t < tensors && starts[t] < static_cast<double>(end); t++) {
      const auto start = static_cast<int64_t>(starts[t]), stop = static_cast<int64_t>(starts[t + 1]);
      const int64_t from = begin <= start ? 0 : (begin - start) / LINE * LINE;
      const int64_t to = end >= stop ? stop - start : (end - start) / LINE * LINE;
      T* pointers[MAX_BUFFERS];
      for (int64_t b = 0; b < buffers; b++) pointers[b] = address<T>(addresses[t * buffers + b]);
      if (from < to) update(pointers, scalars, from, to);
    }
  });
  return Status::OK;
}

}  // namespace

Status runRule(Command& command) {
  return command.flag() ? launchRule<double>(command, &Rule::f64) : launchRule<float>(command, &Rule::f32);
}

}  // namespace opt::OPT_ISA
