// Normalisation of channels over a batch and its gradient. A channel's values stay in the second cache between the passes over them.
#include <algorithm>
#include <array>

#include "kernels/command.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"

namespace opt::OPT_ISA {
namespace {

// Channels of a part where each has few neighbours.
constexpr int64_t COLUMNS = 64;

/** [outer, channels, inner]. */
struct Channels {
  explicit Channels(Command& command) : outer(command.integer()), channels(command.integer()), inner(command.integer()), eps(command.number()) {}

  int64_t first(int64_t image, int64_t channel) const { return (image * channels + channel) * inner; }
  double count() const { return static_cast<double>(outer * inner); }
  bool hasRuns() const { return inner >= LANES_OF_SUM; }
  int64_t grain() const { return hasRuns() ? smaller(COLUMNS, grainOf(4 * outer * inner)) : COLUMNS; }

  /** Of each channel from `begin` to `end` the sums of `terms(channel, place)` over its places: each image by itself, then images in order. */
  template <typename... Terms>
  OPT_INLINE void sums(int64_t begin, int64_t end, const std::array<double*, sizeof...(Terms)>& to, const Terms&... terms) const {
    for (double* sums : to) std::fill(sums, sums + (end - begin), 0.0);
    for (int64_t image = 0; image < outer; image++) {
      if (inner == 1) {
        const int64_t at = first(image, 0);
        OPT_INDEPENDENT
        for (int64_t c = begin; c < end; c++) {
          size_t k = 0;
          ((to[k++][c - begin] += terms(c, at + c)), ...);
        }
      } else {
        for (int64_t c = begin; c < end; c++) {
          const int64_t at = first(image, c);
          size_t k = 0;
          ((to[k++][c - begin] += sumOf(inner, [&](int64_t i) { return terms(c, at + i); })), ...);
        }
      }
    }
  }

  /** Calls `body(channel, place)` for all places of the channels. */
  template <typename Body>
  OPT_INLINE void forEach(int64_t begin, int64_t end, const Body& body) const {
    for (int64_t image = 0; image < outer; image++) {
      if (inner == 1) {
        const int64_t at = first(image, 0);
        OPT_INDEPENDENT
        for (int64_t c = begin; c < end; c++) body(c, at + c);
      } else {
        for (int64_t c = begin; c < end; c++) {
          const int64_t at = first(image, c);
          OPT_INDEPENDENT
          for (int64_t i = at; i < at + inner; i++) body(c, i);
        }
      }
    }
  }

  int64_t outer, channels, inner;
  double eps;
};

template <typename T>
Status batchNorm(Command& command) {
  const Channels of(command);
  const T* x = command.pointer<const T>();
  const T* weight = command.pointer<const T>();
  const T* bias = command.pointer<const T>();
  T* y = command.pointer<T>();
  T* means = command.pointer<T>();
  T* variances = command.pointer<T>();
  parallelFor(of.channels, of.grain(), command.threads, [=](int64_t begin, int64_t end) {
    double mean[COLUMNS], variance[COLUMNS], scale[COLUMNS], shift[COLUMNS];
    of.sums(begin, end, {mean}, [=](int64_t, int64_t at) { return static_cast<double>(x[at]); });
    for (int64_t c = 0; c < end - begin; c++) mean[c] /= of.count();
    of.sums(begin, end, {variance}, [&](int64_t c, int64_t at) {
      const double difference = static_cast<double>(x[at]) - mean[c - begin];
      return difference * difference;
    });
    for (int64_t c = 0; c < end - begin; c++) {
      variance[c] /= of.count();
      scale[c] = static_cast<double>(weight[begin + c]) / sqrt(variance[c] + of.eps);
      shift[c] = static_cast<double>(bias[begin + c]);
      means[begin + c] = static_cast<T>(mean[c]);
      variances[begin + c] = static_cast<T>(variance[c]);
    }
    of.forEach(begin, end, [&](int64_t c, int64_t at) {
      y[at] = static_cast<T>((static_cast<double>(x[at]) - mean[c - begin]) * scale[c - begin] + shift[c - begin]);
    });
  });
  return Status::OK;
}

/** With h = (x - mean) * rstd: dx = weight * rstd * (g - mean(g) - h * mean(g h)), dweight = sum(g h), dbias = sum(g). */
template <typename T>
Status batchNormGrad(Command& command) {
  const Channels of(command);
  const T* x = command.pointer<const T>();
  const T* weight = command.pointer<const T>();
  const T* means = command.pointer<const T>();
  const T* variances = command.pointer<const T>();
  const T* g = command.pointer<const T>();
  T* dx = command.pointer<T>();
  T* dweight = command.pointer<T>();
  T* dbias = command.pointer<T>();
  parallelFor(of.channels, of.grain(), command.threads, [=](int64_t begin, int64_t end) {
    double mean[COLUMNS], sum[COLUMNS], along[COLUMNS], scale[COLUMNS], slope[COLUMNS];
    for (int64_t c = begin; c < end; c++) mean[c - begin] = static_cast<double>(means[c]);
    const auto g64 = [=](int64_t, int64_t at) { return static_cast<double>(g[at]); };
    of.sums(begin, end, {sum, along}, g64, [&](int64_t c, int64_t at) { return g64(c, at) * (static_cast<double>(x[at]) - mean[c - begin]); });
    for (int64_t c = begin; c < end; c++) {
      const int64_t i = c - begin;
      // Of nothing the variance is NaN, and sums are 0.
      const double rstd = of.count() == 0 ? 0 : 1 / sqrt(static_cast<double>(variances[c]) + of.eps);
      dweight[c] = static_cast<T>(along[i] * rstd);
      dbias[c] = static_cast<T>(sum[i]);
      scale[i] = static_cast<double>(weight[c]) * rstd;
      slope[i] = along[i] * rstd * rstd / of.count();
      sum[i] /= of.count();
    }
    of.forEach(begin, end, [&](int64_t c, int64_t at) {
      const int64_t i = c - begin;
      dx[at] = static_cast<T>(scale[i] * (static_cast<double>(g[at]) - sum[i] - (static_cast<double>(x[at]) - mean[i]) * slope[i]));
    });
  });
  return Status::OK;
}

}  // namespace

Status runBatchNorm(Command& command) { return command.flag() ? batchNorm<double>(command) : batchNorm<float>(command); }
Status runBatchNormGrad(Command& command) { return command.flag() ? batchNormGrad<double>(command) : batchNormGrad<float>(command); }

}  // namespace opt::OPT_ISA
