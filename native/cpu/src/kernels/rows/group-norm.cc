// Normalisation of the groups of channels of each sample and its gradient. A group's values stay in the second cache between the passes over them.
#include "commands.h"
#include "kernels/parallel.h"
#include "kernels/rows/rows.h"

namespace opt::OPT_ISA {
namespace {

/** The groups of [outer, channels, inner]: each is `size` runs, one after the other. */
struct Groups : ChannelSizesFields {
  int64_t groups, size;

  Groups(const ChannelSizesFields& sizes, int64_t groups) : ChannelSizesFields(sizes), groups(groups), size(channels / groups) {}

  int64_t all() const { return outer * groups; }
  double count() const { return static_cast<double>(size * inner); }
  int64_t grain() const { return grainOf(4 * size * inner); }
  int64_t channel(int64_t run) const { return run % channels; }

  /** Calls `visit(run, place)` for the first place of each run of a group. */
  template <typename Visit>
  OPT_INLINE void forRuns(int64_t group, const Visit& visit) const {
    for (int64_t run = group * size; run < (group + 1) * size; run++) visit(run, run * inner);
  }

  /** The sum of `term(place)` over a group: of each run by itself, then runs in order. */
  template <typename Term>
  OPT_INLINE double sum(int64_t group, const Term& term) const {
    double total = 0;
    forRuns(group, [&](int64_t, int64_t first) { total += sumOf(inner, [&](int64_t i) { return term(first + i); }); });
    return total;
  }
};

template <typename T>
Status groupNorm(const GroupNormFields<T>& given, int threads) {
  const Groups of(given.sizes, given.groups);
  const T *x = given.input, *weight = given.weight, *bias = given.bias;
  T *y = given.output, *means = given.mean, *variances = given.variance;
  parallelFor(of.all(), of.grain(), threads, [=](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group++) {
      const double mean = of.sum(group, [=](int64_t at) { return static_cast<double>(x[at]); }) / of.count();
      const double squares = of.sum(group, [=](int64_t at) {
        const double difference = static_cast<double>(x[at]) - mean;
        return difference * difference;
      });
      const double variance = squares / of.count();
      const double deviation = sqrt(variance + of.eps);
      of.forRuns(group, [&](int64_t run, int64_t first) {
        const double scale = static_cast<double>(weight[of.channel(run)]) / deviation;
        const double shift = static_cast<double>(bias[of.channel(run)]);
        OPT_INDEPENDENT
        for (int64_t i = first; i < first + of.inner; i++) y[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * scale + shift);
      });
      means[group] = static_cast<T>(mean);
      variances[group] = static_cast<T>(variance);
    }
  });
  return Status::OK;
}

/** With h = (x - mean) * rstd and q = weight * g: dx = rstd * (q - mean(q) - h * mean(q h)), of each run dweight = sum(g h), dbias = sum(g). */
template <typename T>
Status groupNormGrad(const GroupNormGradFields<T>& given, int threads) {
  const Groups of(given.sizes, given.groups);
  const T *x = given.input, *weight = given.weight, *means = given.mean, *variances = given.variance, *g = given.gradient;
  T *dx = given.inputGradient, *dweight = given.weightGradient, *dbias = given.biasGradient;
  parallelFor(of.all(), of.grain(), threads, [=](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group++) {
      const double mean = static_cast<double>(means[group]);
      // Of nothing the variance is NaN, and sums are 0.
      const double rstd = of.count() == 0 ? 0 : 1 / sqrt(static_cast<double>(variances[group]) + of.eps);
      double total = 0, along = 0;
      of.forRuns(group, [&](int64_t run, int64_t first) {
        const double scale = static_cast<double>(weight[of.channel(run)]);
        const double sum = sumOf(of.inner, [=](int64_t i) { return static_cast<double>(g[first + i]); });
        const double product =
            sumOf(of.inner, [=](int64_t i) { return static_cast<double>(g[first + i]) * (static_cast<double>(x[first + i]) - mean); });
        total += scale * sum;
        along += scale * product;
        dweight[run] = static_cast<T>(product * rstd);
        dbias[run] = static_cast<T>(sum);
      });
      const double shift = total * rstd / of.count();
      const double slope = along * rstd * rstd * rstd / of.count();
      of.forRuns(group, [&](int64_t run, int64_t first) {
        const double scale = static_cast<double>(weight[of.channel(run)]) * rstd;
        OPT_INDEPENDENT
        for (int64_t i = first; i < first + of.inner; i++)
          dx[i] = static_cast<T>(scale * static_cast<double>(g[i]) - shift - (static_cast<double>(x[i]) - mean) * slope);
      });
    }
  });
  return Status::OK;
}

}  // namespace

OPT_RUN(GroupNormFields, groupNorm)
OPT_RUN(GroupNormGradFields, groupNormGrad)

}  // namespace opt::OPT_ISA
