// Normalisation of channels over a batch and its gradient: the sum of each image's run, images in order.
#include "block.cuh"
#include "fields.cuh"

/** [outer, channels, inner]. A block treats a channel. */
struct Channels : ChannelSizesFields {
  __device__ __forceinline__ double count() const { return static_cast<double>(outer * inner); }

  /** The sum of term(place) over a channel, in all threads: THREADS images at a time where each has one value. */
  template <typename Term>
  __device__ __forceinline__ double sum(Index channel, Term term) const {
    __shared__ double terms[THREADS];
    double total = 0;
    if (inner > 1) {
      for (Index image = 0; image < outer; image++) {
        const Index first = (image * channels + channel) * inner;
        total += sumOver(inner, [=](Index i) { return term(first + i); });
      }
      return total;
    }
    for (Index first = 0; first < outer; first += blockDim.x) {
      const Index images = outer - first < blockDim.x ? outer - first : blockDim.x;
      __syncthreads();  // earlier ones may still be read
      if (threadIdx.x < images) terms[threadIdx.x] = term((first + threadIdx.x) * channels + channel);
      __syncthreads();
      for (Index i = 0; i < images; i++) total += terms[i];
    }
    return total;
  }

  template <typename Body>
  __device__ __forceinline__ void forEach(Index channel, Body body) const {
    for (Index i = threadIdx.x; i < outer * inner; i += blockDim.x) body((i / inner * channels + channel) * inner + i % inner);
  }
};

template <typename T>
__device__ void batchNorm(const BatchNormFields<T>& given) {
  const Channels of{given.sizes};
  const T* x = given.input;
  T* y = given.output;
  for (Index c = blockIdx.x; c < of.channels; c += gridDim.x) {
    const double mean = of.sum(c, [=](Index i) { return static_cast<double>(x[i]); }) / of.count();
    const double squares = of.sum(c, [=](Index i) {
      const double centered = static_cast<double>(x[i]) - mean;
      return centered * centered;
    });
    const double variance = squares / of.count();
    const double scale = static_cast<double>(given.weight[c]) / sqrt(variance + of.eps), shift = static_cast<double>(given.bias[c]);
    of.forEach(c, [=](Index i) { y[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * scale + shift); });
    if (threadIdx.x == 0) {
      given.mean[c] = static_cast<T>(mean);
      given.variance[c] = static_cast<T>(variance);
    }
  }
}

/** With h = (x - mean) * rstd: dx = weight * rstd * (g - mean(g) - h * mean(g h)), dweight = sum(g h), dbias = sum(g). */
template <typename T>
__device__ void batchNormGrad(const BatchNormGradFields<T>& given) {
  const Channels of{given.sizes};
  const T *x = given.input, *g = given.gradient;
  T* dx = given.inputGradient;
  for (Index c = blockIdx.x; c < of.channels; c += gridDim.x) {
    const auto mean = static_cast<double>(given.mean[c]);
    const double sum = of.sum(c, [=](Index i) { return static_cast<double>(g[i]); });
    const double along = of.sum(c, [=](Index i) { return static_cast<double>(g[i]) * (static_cast<double>(x[i]) - mean); });
    // Of nothing the variance is NaN, and sums are 0.
    const double rstd = of.count() == 0 ? 0 : 1 / sqrt(static_cast<double>(given.variance[c]) + of.eps);
    const double scale = static_cast<double>(given.weight[c]) * rstd, slope = along * rstd * rstd / of.count(), shift = sum / of.count();
    of.forEach(c, [=](Index i) {
      dx[i] = static_cast<T>(scale * (static_cast<double>(g[i]) - shift - (static_cast<double>(x[i]) - mean) * slope));
    });
    if (threadIdx.x == 0) {
      given.weightGradient[c] = static_cast<T>(along * rstd);
      given.biasGradient[c] = static_cast<T>(sum);
    }
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(batchNorm_##DTYPE)(BatchNormFields<T> given) { batchNorm(given); }                                        \
  OPT_KERNEL(batchNormGrad_##DTYPE)(BatchNormGradFields<T> given) { batchNormGrad(given); }
OPT_EACH_DTYPE(DEFINE)
