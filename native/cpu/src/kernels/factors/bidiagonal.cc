// Steps of a matrix on its way to a bidiagonal one.
#include "commands.h"
#include "kernels/factors/lanes4.h"

namespace opt::OPT_ISA {
namespace {

/** ROWS rows from `row` on, which take turns at each sum. */
template <int ROWS>
void addUp(const SumOfRowsFields& given, int64_t row) {
  const double* __restrict at = given.a + given.start + row * given.width;
  const double* __restrict factors = given.factors + row;
  double* __restrict sums = given.sums;
  for (int64_t c = 0; c < given.length; c++) {
    double sum = sums[c];
    for (int r = 0; r < ROWS; r++) sum += factors[r] * at[r * given.width + c];
    sums[c] = sum;
  }
}

template <int ROWS>
void update(const BidiagonalUpdateFields& given, int64_t row) {
  const int64_t length = given.length, whole = length & ~int64_t{3};
  const double *sums = given.sums, *v = given.v;
  double* at[ROWS];
  double outer[ROWS];
  Lanes4 products[ROWS] = {};
  for (int r = 0; r < ROWS; r++) {
    at[r] = given.a + given.start + (row + r) * given.width;
    outer[r] = given.scale * given.factors[row + r];
  }
  for (int64_t c = 0; c < whole; c += 4) {
    const auto sc = loadVector<Lanes4>(sums + c), vc = loadVector<Lanes4>(v + c);
    for (int r = 0; r < ROWS; r++) {
      const Lanes4 x = loadVector<Lanes4>(at[r] + c) + sc * outer[r];
      storeVector(at[r] + c, x);
      products[r] += x * vc;
    }
  }
  double inner[ROWS];
  for (int r = 0; r < ROWS; r++) {
    for (int64_t c = whole; c < length; c++) {
      at[r][c] += outer[r] * sums[c];
      products[r][0] += at[r][c] * v[c];
    }
    inner[r] = -given.tau * sumOf(products[r]);
  }
  for (int64_t c = 0; c < whole; c += 4) {
    const auto vc = loadVector<Lanes4>(v + c);
    for (int r = 0; r < ROWS; r++) storeVector(at[r] + c, loadVector<Lanes4>(at[r] + c) + vc * inner[r]);
  }
  for (int r = 0; r < ROWS; r++) {
    for (int64_t c = whole; c < length; c++) at[r][c] += inner[r] * v[c];
  }
}

}  // namespace

Status run(const SumOfRowsFields& given, int) {
  int64_t row = 0;
  for (; row + 4 <= given.count; row += 4) addUp<4>(given, row);
  for (; row < given.count; row++) addUp<1>(given, row);
  return Status::OK;
}

Status run(const BidiagonalUpdateFields& given, int) {
  int64_t row = 0;
  for (; row + 4 <= given.count; row += 4) update<4>(given, row);
  for (; row < given.count; row++) update<1>(given, row);
  return Status::OK;
}

}  // namespace opt::OPT_ISA
