// Rotations of pairs of rows: some columns lie side by side while all rotations pass.
#include "kernels/wide.h"
// First of all.
#include <cstring>

#include "commands.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {
namespace {

using V = Vector<double>;
constexpr int WIDTH = LANES<double>;
/** Four vectors, by name: the compiler keeps an array of them in memory. */
constexpr int SIDE = 4 * WIDTH;

/** The first of a pair is written, the second takes its place. */
OPT_INLINE void rotate(V& held, double* to, const double* from, double c, double s) {
  const V x = held, y = loadVector<V>(from);
  storeVector(to, x * c + y * s);
  held = y * c - x * s;
}

/** The second row of a pair is often the first of the next one, and stays in registers. */
void rotateAll(double* side, const RotateRowsFields& given) {
  V a{}, b{}, c{}, d{};
  int64_t row = -1;
  const auto leave = [&]() OPT_INLINE_LAMBDA {
    if (row < 0) return;
    double* const to = side + row * SIDE;
    storeVector(to, a);
    storeVector(to + WIDTH, b);
    storeVector(to + 2 * WIDTH, c);
    storeVector(to + 3 * WIDTH, d);
  };
  for (int64_t k = 0; k < given.count; k++) {
    double* const first = side + given.firsts[k] * SIDE;
    if (given.firsts[k] != row) {
      leave();
      a = loadVector<V>(first);
      b = loadVector<V>(first + WIDTH);
      c = loadVector<V>(first + 2 * WIDTH);
      d = loadVector<V>(first + 3 * WIDTH);
    }
    row = given.seconds[k];
    const double* const second = side + row * SIDE;
    const double cosine = given.cosines[k], sine = given.sines[k];
    rotate(a, first, second, cosine, sine);
    rotate(b, first + WIDTH, second + WIDTH, cosine, sine);
    rotate(c, first + 2 * WIDTH, second + 2 * WIDTH, cosine, sine);
    rotate(d, first + 3 * WIDTH, second + 3 * WIDTH, cosine, sine);
  }
  leave();
}

}  // namespace

Status run(const RotateRowsFields& given, int threads) {
  const int64_t size = given.height * SIDE;
  Scratch<double> sides(size * threads);
  if (!sides) return Status::OUT_OF_MEMORY;
  for (int64_t i = 0; i < size * threads; i++) sides[i] = 0;
  parallelFor(given.width, SIDE, threads, [&](int64_t begin, int64_t end, int thread) {
    double* const side = sides.data() + thread * size;
    const size_t bytes = static_cast<size_t>(end - begin) * sizeof(double);
    for (int64_t r = 0; r < given.height; r++) std::memcpy(side + r * SIDE, given.rows + r * given.width + begin, bytes);
    rotateAll(side, given);
    for (int64_t r = 0; r < given.height; r++) std::memcpy(given.rows + r * given.width + begin, side + r * SIDE, bytes);
  });
  return Status::OK;
}

}  // namespace opt::OPT_ISA
