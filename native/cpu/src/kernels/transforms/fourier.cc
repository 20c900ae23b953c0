// Fourier transforms of long powers of two: core's ops/fft/transform.ts, in its order.
#include "kernels/wide.h"
// First of all.
#include <cstdint>
#include <utility>

#include "commands.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

/** Sequences side by side. */
constexpr int64_t SIDE = 8;

struct Complex {
  double *re, *im;
};

/** All that threads share, and memory of each: two times `length` numbers side by side. */
struct Transform {
  const FourierTransformFields& given;
  double* scratch;
  int64_t length;

  Complex memory(int thread, int half) const {
    double* const start = scratch + (thread * 2 + half) * 2 * length * SIDE;
    return {start, start + length * SIDE};
  }
};

void pass2(const double* __restrict from, double* __restrict to, int64_t half) {
  for (int64_t q = 0; q < half; q++) {
    const double first = from[q], second = from[q + half];
    to[q] = first + second;
    to[q + half] = first - second;
  }
}

/** `stride` neighbours that turn alike. */
OPT_INLINE void turn4(const double* __restrict re, const double* __restrict im, double* __restrict toRe, double* __restrict toIm,
                      int64_t quarter, int64_t stride, const double (&c)[3], const double (&s)[3]) {
  for (int64_t q = 0; q < stride; q++) {
    const double ar = re[q] + re[q + 2 * quarter], ai = im[q] + im[q + 2 * quarter];
    const double br = re[q] - re[q + 2 * quarter], bi = im[q] - im[q + 2 * quarter];
    const double cr = re[q + quarter] + re[q + 3 * quarter], ci = im[q + quarter] + im[q + 3 * quarter];
    const double dr = re[q + quarter] - re[q + 3 * quarter], di = im[q + quarter] - im[q + 3 * quarter];
    toRe[q] = ar + cr;
    toIm[q] = ai + ci;
    const double er = br + di, ei = bi - dr;
    toRe[q + stride] = er * c[0] + ei * s[0];
    toIm[q + stride] = ei * c[0] - er * s[0];
    const double fr = ar - cr, fi = ai - ci;
    toRe[q + 2 * stride] = fr * c[1] + fi * s[1];
    toIm[q + 2 * stride] = fi * c[1] - fr * s[1];
    const double gr = br - di, gi = bi + dr;
    toRe[q + 3 * stride] = gr * c[2] + gi * s[2];
    toIm[q + 3 * stride] = gi * c[2] - gr * s[2];
  }
}

/** Where the result is: in `a` or in `b`. */
Complex radix4(Complex a, Complex b, int64_t n, const TurnsFields& turns) {
  const int64_t quarter = n / 4 * SIDE;
  int64_t done = 1;
  for (; n / done >= 4; done *= 4) {
    const int64_t stride = done * SIDE;
    for (int64_t turned = 0; turned < n / 4; turned += done) {
      const int64_t at = turned * SIDE;
      const double c[3] = {turns.cosines[turned], turns.cosines[2 * turned], turns.cosines[3 * turned]};
      const double s[3] = {turns.sines[turned], turns.sines[2 * turned], turns.sines[3 * turned]};
      // The first pass has the most turns, of a length that the compiler then knows.
      if (done == 1) {
        turn4(a.re + at, a.im + at, b.re + 4 * at, b.im + 4 * at, quarter, SIDE, c, s);
      } else {
        turn4(a.re + at, a.im + at, b.re + 4 * at, b.im + 4 * at, quarter, stride, c, s);
      }
    }
    std::swap(a, b);
  }
  if (n / done == 2) {
    pass2(a.re, b.re, done * SIDE);
    pass2(a.im, b.im, done * SIDE);
    return b;
  }
  return a;
}

/** Element k of a column turns back by k * column / n. */
void turnBack(const FourierTransformFields& given, Complex x, int64_t column) {
  int shift = 0;
  while ((int64_t{1} << shift) < given.columns) shift++;
  const auto &fine = given.fine, &coarse = given.ofRows;
  for (int64_t k = 0; k < given.rows; k++) {
    double c[SIDE], s[SIDE];
    for (int64_t lane = 0; lane < SIDE; lane++) {
      const int64_t whole = k * (column + lane), low = whole & (given.columns - 1), high = whole >> shift;
      c[lane] = fine.cosines[low] * coarse.cosines[high] - fine.sines[low] * coarse.sines[high];
      s[lane] = fine.cosines[low] * coarse.sines[high] + fine.sines[low] * coarse.cosines[high];
    }
    double *re = x.re + k * SIDE, *im = x.im + k * SIDE;
    for (int64_t lane = 0; lane < SIDE; lane++) {
      const double before = re[lane];
      re[lane] = before * c[lane] + im[lane] * s[lane];
      im[lane] = im[lane] * c[lane] - before * s[lane];
    }
  }
}

/** From pairs of floats, which the inverse reads the other way round. */
void columnsFrom(const Transform& transform, int64_t column, int thread, bool inverse) {
  const auto& given = transform.given;
  const auto a = transform.memory(thread, 0);
  const float* const pairs = reinterpret_cast<const float*>(given.from) + 2 * column;
  double* const first = inverse ? a.im : a.re;
  double* const second = inverse ? a.re : a.im;
  for (int64_t k = 0; k < given.rows; k++) {
    const float* const at = pairs + 2 * k * given.columns;
    for (int64_t lane = 0; lane < SIDE; lane++) {
      first[k * SIDE + lane] = at[2 * lane];
      second[k * SIDE + lane] = at[2 * lane + 1];
    }
  }
  const Complex x = radix4(a, transform.memory(thread, 1), given.rows, given.ofRows);
  turnBack(given, x, column);
  for (int64_t k = 0; k < given.rows; k++) {
    const int64_t at = k * given.columns + column;
    for (int64_t lane = 0; lane < SIDE; lane++) given.re[at + lane] = x.re[k * SIDE + lane];
    for (int64_t lane = 0; lane < SIDE; lane++) given.im[at + lane] = x.im[k * SIDE + lane];
  }
}

/** SIDE rows of the matrix transformed: element k of row `row + lane` is at k * SIDE + lane. */
Complex rowsFrom(const Transform& transform, int64_t row, int thread) {
  const auto& given = transform.given;
  const auto a = transform.memory(thread, 0);
  for (int64_t lane = 0; lane < SIDE; lane++) {
    const int64_t at = (row + lane) * given.columns;
    for (int64_t k = 0; k < given.columns; k++) a.re[k * SIDE + lane] = given.re[at + k];
    for (int64_t k = 0; k < given.columns; k++) a.im[k * SIDE + lane] = given.im[at + k];
  }
  return radix4(a, transform.memory(thread, 1), given.columns, given.ofColumns);
}

/** Both stages; `write` takes what `rowsFrom` returns. */
template <class Write>
Status transformAll(const FourierTransformFields& given, int threads, bool inverse, const Write& write) {
  const int64_t length = larger(given.rows, given.columns);
  Scratch<double> scratch(4 * length * SIDE * threads);
  if (!scratch) return Status::OUT_OF_MEMORY;
  const Transform transform{given, scratch.data(), length};
  parallelFor(given.columns, SIDE, threads,
              [&](int64_t column, int64_t, int thread) { columnsFrom(transform, column, thread, inverse); });
  parallelFor(given.rows, SIDE, threads,
              [&](int64_t row, int64_t, int thread) { write(row, rowsFrom(transform, row, thread)); });
  return Status::OK;
}

/** Pairs k to below `end` of the spectrum of real numbers, and those of the same numbers from the ends and from the middle. */
void writeSpectrum(const RealFourierTransformFields& given, int64_t begin, int64_t end) {
  const int64_t half = given.half.rows * given.half.columns;
  const double scale = given.half.scale, sign = given.half.inverse ? -scale : scale;
  const double *const re = given.halfRe, *const im = given.halfIm;
  float* const to = reinterpret_cast<float*>(given.half.to);
  const auto write = [&](int64_t k, double x, double y) {
    const int64_t other = 2 * (2 * half - k);
    to[2 * k] = to[other] = static_cast<float>(x);
    to[2 * k + 1] = static_cast<float>(y);
    to[other + 1] = -static_cast<float>(y);
  };
  for (int64_t k = begin; k < end; k++) {
    const int64_t j = half - k;
    const double evenRe = (re[k] + re[j]) / 2, evenIm = (im[k] - im[j]) / 2;
    const double oddRe = (im[k] + im[j]) / 2, oddIm = (re[j] - re[k]) / 2;
    const double c = given.halves.cosines[k], s = given.halves.sines[k];
    const double turnedRe = oddRe * c + oddIm * s, turnedIm = oddIm * c - oddRe * s;
    write(k, (evenRe + turnedRe) * scale, (evenIm + turnedIm) * sign);
    write(j, (evenRe - turnedRe) * scale, (turnedIm - evenIm) * sign);
  }
}

}  // namespace

Status run(const FourierTransformFields& given, int threads) {
  return transformAll(given, threads, given.inverse, [&](int64_t row, Complex x) {
    const double* const first = given.inverse ? x.im : x.re;
    const double* const second = given.inverse ? x.re : x.im;
    float* const pairs = reinterpret_cast<float*>(given.to) + 2 * row;
    for (int64_t k = 0; k < given.columns; k++) {
      float* const at = pairs + 2 * k * given.rows;
      for (int64_t lane = 0; lane < SIDE; lane++) {
        at[2 * lane] = static_cast<float>(first[k * SIDE + lane] * given.scale);
        at[2 * lane + 1] = static_cast<float>(second[k * SIDE + lane] * given.scale);
      }
    }
  });
}

Status run(const RealFourierTransformFields& given, int threads) {
  const Status status = transformAll(given.half, threads, false, [&](int64_t row, Complex x) {
    for (int64_t k = 0; k < given.half.columns; k++) {
      const int64_t at = row + k * given.half.rows;
      for (int64_t lane = 0; lane < SIDE; lane++) given.halfRe[at + lane] = x.re[k * SIDE + lane];
      for (int64_t lane = 0; lane < SIDE; lane++) given.halfIm[at + lane] = x.im[k * SIDE + lane];
    }
  });
  if (status != Status::OK) return status;
  const int64_t half = given.half.rows * given.half.columns;
  float* const to = reinterpret_cast<float*>(given.half.to);
  to[0] = static_cast<float>((given.halfRe[0] + given.halfIm[0]) * given.half.scale);
  to[2 * half] = static_cast<float>((given.halfRe[0] - given.halfIm[0]) * given.half.scale);
  to[1] = to[2 * half + 1] = 0;
  parallelFor(half / 2, 4096, threads,
              [&](int64_t begin, int64_t end) { writeSpectrum(given, begin + 1, end + 1); });
  return Status::OK;
}

}  // namespace opt::OPT_ISA
