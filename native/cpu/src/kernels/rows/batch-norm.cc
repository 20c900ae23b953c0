// Normalisation of channels over a batch and its gradient. A channel's values stay in the second cache between the passes over them.
#include <algorithm>
#include <array>

#include "commands.h"
#include "kernels/parallel.h"
#include "kernels/rows/rows.h"

namespace opt::OPT_ISA {
namespace {

// Channels of a part where each has few neighbours.
constexpr int64_t COLUMNS = 64;

/** [outer, channels, inner]. */
struct Channels : ChannelSizesFields {
  explicit Channels(const ChannelSizesFields& sizes) : ChannelSizesFields(sizes) {}

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
};

template <typename T>
Status batchNorm(const BatchNormFields<T>& given, int threads) {
  const Channels of(given.sizes);
  const T *x = given.input, *weight = given.weight, *bias = given.bias;
  T *y = given.output, *means = given.mean, *variances = given.variance;
  parallelFor(of.channels, of.grain(), threads, [=](int64_t begin, int64_t end) {
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
Status batchNormGrad(const BatchNormGradFields<T>& given, int threads) {
  const Channels of(given.sizes);
  const T *x = given.input, *weight = given.weight, *means = given.mean, *variances = given.variance, *g = given.gradient;
  T *dx = given.inputGradient, *dweight = given.weightGradient, *dbias = given.biasGradient;
  parallelFor(of.channels, of.grain(), threads, [=](int64_t begin, int64_t end) {
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

OPT_RUN(BatchNormFields, batchNorm)
OPT_RUN(BatchNormGradFields, batchNormGrad)

}  // namespace opt::OPT_ISA
