// Rows times Householder's reflections: eight rows lie side by side while all reflections pass.
#include "kernels/wide.h"
// First of all.
#include "commands.h"
#include "kernels/factors/lanes4.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

constexpr int SIDE = 8;
using V = Vector<double>;
constexpr int VECTORS = SIDE / LANES<double>;

/** One row of `length` elements, `stride` apart. */
void reflectOne(double* x, int64_t stride, const double* v, double tau, int64_t length) {
  double sums[4] = {};
  const int64_t whole = length & ~int64_t{3};
  for (int64_t i = 0; i < whole; i++) sums[i & 3] += x[i * stride] * v[i];
  for (int64_t i = whole; i < length; i++) sums[0] += x[i * stride] * v[i];
  const double factor = -tau * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (int64_t i = 0; i < length; i++) x[i * stride] += factor * v[i];
}

OPT_INLINE void addTo(V* sums, const double* x, double v) {
  for (int u = 0; u < VECTORS; u++) sums[u] += loadVector<V>(x + u * LANES<double>) * v;
}

/** Element i of the rows is at `x + i * SIDE`. */
void reflectAll(double* x, const double* v, double tau, int64_t length) {
  V s0[VECTORS] = {}, s1[VECTORS] = {}, s2[VECTORS] = {}, s3[VECTORS] = {};
  const int64_t whole = length & ~int64_t{3};
  for (int64_t i = 0; i < whole; i += 4) {
    const double* at = x + i * SIDE;
    addTo(s0, at, v[i]);
    addTo(s1, at + SIDE, v[i + 1]);
    addTo(s2, at + 2 * SIDE, v[i + 2]);
    addTo(s3, at + 3 * SIDE, v[i + 3]);
  }
  for (int64_t i = whole; i < length; i++) addTo(s0, x + i * SIDE, v[i]);
  V factor[VECTORS];
  for (int u = 0; u < VECTORS; u++) factor[u] = ((s0[u] + s1[u]) + (s2[u] + s3[u])) * -tau;
  for (int64_t i = 0; i < length; i++) {
    for (int u = 0; u < VECTORS; u++) {
      double* at = x + i * SIDE + u * LANES<double>;
      storeVector(at, loadVector<V>(at) + factor[u] * v[i]);
    }
  }
}

struct Reflector {
  const ReflectRowsFields& given;

  const double* vectorOf(int64_t k) const { return given.v + k * given.width + given.first + k; }
  int64_t length(int64_t k) const { return given.width - given.first - k; }

  /** Rows from `row` on, of which the first is the first of the side. */
  void strip(double* side, int64_t row, int64_t count) const {
    for (int64_t i = 0; i < count; i++) {
      const double* from = given.rows + (row + i) * given.width;
      for (int64_t j = 0; j < given.width; j++) side[j * SIDE + i] = from[j];
    }
    // Of later reflections only some of the rows take any.
    const int64_t all = smaller(given.end, row - given.first + 1), most = smaller(given.end, row + count - given.first);
    if (!given.backwards) {
      for (int64_t k = given.begin; k < all; k++) pass(side, k);
    }
    for (int64_t i = 0; i < (all < most ? count : 0); i++) {
      const int64_t own = smaller(given.end, row + i - given.first + 1), first = larger(all, given.begin);
      for (int64_t n = 0; n < own - first; n++) {
        const int64_t k = given.backwards ? own - 1 - n : first + n;
        if (given.taus[k] != 0) reflectOne(side + (given.first + k) * SIDE + i, SIDE, vectorOf(k), given.taus[k], length(k));
      }
    }
    if (given.backwards) {
      for (int64_t k = all - 1; k >= given.begin; k--) pass(side, k);
    }
    for (int64_t i = 0; i < count; i++) {
      double* to = given.rows + (row + i) * given.width;
      for (int64_t j = 0; j < given.width; j++) to[j] = side[j * SIDE + i];
    }
  }

 private:
  void pass(double* side, int64_t k) const {
    if (given.taus[k] != 0) reflectAll(side + (given.first + k) * SIDE, vectorOf(k), given.taus[k], length(k));
  }
};

}  // namespace

Status run(const ReflectRowsFields& given, int threads) {
  const int64_t size = given.width * SIDE;
  Scratch<double> sides(size * threads);
  if (!sides) return Status::OUT_OF_MEMORY;
  for (int64_t i = 0; i < size * threads; i++) sides[i] = 0;
  const Reflector reflector{given};
  parallelFor(given.to - given.from, SIDE, threads, [&](int64_t begin, int64_t end, int thread) {
    reflector.strip(sides.data() + thread * size, given.from + begin, end - begin);
  });
  return Status::OK;
}

}  // namespace opt::OPT_ISA
