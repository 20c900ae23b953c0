// A step of a symmetric matrix on its way to a tridiagonal one.
#include "commands.h"
#include "kernels/factors/lanes4.h"

namespace opt::OPT_ISA {
namespace {

/** ROWS rows from `row` on, a multiple of 4: side by side they read v, w, u and the product once. */
template <int ROWS>
void update(const TridiagonalUpdateFields& given, int64_t row) {
  const double *v = given.v, *w = given.w, *u = given.u;
  double* const product = given.product;
  const int64_t corner = (given.n - given.length) * (given.n + 1);
  double* at[ROWS];
  Lanes4 sums[ROWS] = {};
  for (int r = 0; r < ROWS; r++) at[r] = given.a + corner + (row + r) * given.n;
  for (int64_t c = 0; c < row; c += 4) {
    const auto vc = loadVector<Lanes4>(v + c), wc = loadVector<Lanes4>(w + c), uc = loadVector<Lanes4>(u + c);
    auto added = loadVector<Lanes4>(product + c);
    for (int r = 0; r < ROWS; r++) {
      const Lanes4 x = loadVector<Lanes4>(at[r] + c) - (wc * v[row + r] + vc * w[row + r]);
      storeVector(at[r] + c, x);
      sums[r] += x * uc;
      added += x * u[row + r];
    }
    storeVector(product + c, added);
  }
  for (int r = 0; r < ROWS; r++) {
    const double vr = v[row + r], wr = w[row + r], ur = u[row + r];
    double* const x = at[r] + row;
    for (int c = 0; c < r; c++) {
      x[c] -= vr * w[row + c] + wr * v[row + c];
      sums[r][0] += x[c] * u[row + c];
      product[row + c] += x[c] * ur;
    }
    x[r] -= vr * wr + wr * vr;
    product[row + r] = sumOf(sums[r]) + x[r] * ur;
  }
}

}  // namespace

Status run(const TridiagonalUpdateFields& given, int) {
  int64_t row = 0;
  for (; row + 4 <= given.length; row += 4) update<4>(given, row);
  const int64_t left = given.length - row;
  if (left == 3) update<3>(given, row);
  if (left == 2) update<2>(given, row);
  if (left == 1) update<1>(given, row);
  return Status::OK;
}

}  // namespace opt::OPT_ISA
