// Rotations of pairs of rows: some columns lie side by side while all rotations pass.
#include "kernels/wide.h"
// First of all.
#include <cstring>

#include "commands.h"
#include "kernels/factors/lanes4.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

constexpr int SIDE = 16;
using V = Vector<double>;
constexpr int VECTORS = SIDE / LANES<double>;

struct Row {
  V parts[VECTORS];

  OPT_INLINE void load(const double* from) {
    for (int u = 0; u < VECTORS; u++) parts[u] = loadVector<V>(from + u * LANES<double>);
  }
  OPT_INLINE void store(double* to) const {
    for (int u = 0; u < VECTORS; u++) storeVector(to + u * LANES<double>, parts[u]);
  }
};

/** The second row of a pair is often the first of the next one, and stays in registers. */
void rotate(double* side, const RotateRowsFields& given) {
  Row held{};
  int64_t row = -1;
  for (int64_t k = 0; k < given.count; k++) {
    const int64_t first = given.firsts[k];
    if (first != row) {
      if (row >= 0) held.store(side + row * SIDE);
      held.load(side + first * SIDE);
    }
    row = given.seconds[k];
    const double c = given.cosines[k], s = given.sines[k];
    double* const to = side + first * SIDE;
    const double* const from = side + row * SIDE;
    for (int u = 0; u < VECTORS; u++) {
      const V x = held.parts[u], y = loadVector<V>(from + u * LANES<double>);
      storeVector(to + u * LANES<double>, x * c + y * s);
      held.parts[u] = y * c - x * s;
    }
  }
  if (row >= 0) held.store(side + row * SIDE);
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
    rotate(side, given);
    for (int64_t r = 0; r < given.height; r++) std::memcpy(given.rows + r * given.width + begin, side + r * SIDE, bytes);
  });
  return Status::OK;
}

}  // namespace opt::OPT_ISA
