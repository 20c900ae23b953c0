// Layer normalisation of rows and its gradient.
#include "kernels/wide.h"

#include "kernels/command.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"

namespace opt::OPT_ISA {
namespace {

template <typename T>
Status layerNorm(Command& command) {
  const int64_t rows = command.integer(), length = command.integer();
  const double eps = command.number();
  const T* input = command.pointer<const T>();
  const T* weight = command.pointer<const T>();
  const T* bias = command.pointer<const T>();
  T* output = command.pointer<T>();
  T* means = command.pointer<T>();
  T* rstds = command.pointer<T>();
  parallelFor(rows, grainOf(3 * length), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* x = input + row * length;
      T* y = output + row * length;
      const auto count = static_cast<double>(length);
      const double mean = sumOf(length, [=](int64_t i) { return static_cast<double>(x[i]); }) / count;
      const double squares = sumOf(length, [=](int64_t i) {
        const double difference = static_cast<double>(x[i]) - mean;
        return difference * difference;
      });
      const double rstd = 1 / sqrt(squares / count + eps);
      means[row] = static_cast<T>(mean);
      rstds[row] = static_cast<T>(rstd);
      // Numbers far from 0 and close to each other: what the mean loses in T would be theirs.
      const T high = means[row], low = static_cast<T>(mean - static_cast<double>(high)), scale = rstds[row];
      OPT_INDEPENDENT
      for (int64_t i = 0; i < length; i++) y[i] = ((x[i] - high) - low) * scale * weight[i] + bias[i];
    }
  });
  return Status::OK;
}

/** With h = (x - mean) * rstd and d = g * weight: dx = rstd * (d - mean(d) - h * mean(d h)), dweight = sum(g h), dbias = sum(g). */
template <typename T>
Status layerNormGrad(Command& command) {
  const int64_t rows = command.integer(), length = command.integer();
  const T* input = command.pointer<const T>();
  const T* weight = command.pointer<const T>();
  const T* means = command.pointer<const T>();
  const T* rstds = command.pointer<const T>();
  const T* gradient = command.pointer<const T>();
  T* inputGradient = command.pointer<T>();
  T* weightGradient = command.pointer<T>();
  T* biasGradient = command.pointer<T>();
  parallelFor(rows, grainOf(3 * length), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* x = input + row * length;
      const T* g = gradient + row * length;
      T* dx = inputGradient + row * length;
      const T mean = means[row], rstd = rstds[row];
      const auto h = [=](int64_t i) { return (x[i] - mean) * rstd; };
      const auto d = [=](int64_t i) { return g[i] * weight[i]; };
      const auto meanOf = [=](const auto& term) {
        return static_cast<T>(sumOf(length, [&](int64_t i) { return static_cast<double>(term(i)); }) / static_cast<double>(length));
      };
      const T meanD = meanOf(d), meanDH = meanOf([=](int64_t i) { return d(i) * h(i); });
      OPT_INDEPENDENT
      for (int64_t i = 0; i < length; i++) dx[i] = rstd * (d(i) - meanD - h(i) * meanDH);
    }
  });
  // Columns: each part owns some, and walks the rows in order.
  constexpr int64_t COLUMNS = 64;
  const int64_t rowsPerChunk = rowsOfChunk(length);
  parallelFor(length, COLUMNS, rows * length < 32768 ? 1 : command.threads, [=](int64_t begin, int64_t end) {
    double dweight[COLUMNS] = {}, dbias[COLUMNS] = {}, weights[COLUMNS] = {}, biases[COLUMNS] = {};
    const int64_t width = end - begin;
    for (int64_t first = 0; first < rows; first += rowsPerChunk) {
      const int64_t last = smaller(rows, first + rowsPerChunk);
      for (int64_t row = first; row < last; row++) {
        const T* x = input + row * length + begin;
        const T* g = gradient + row * length + begin;
        const T mean = means[row], rstd = rstds[row];
        OPT_INDEPENDENT
        for (int64_t j = 0; j < width; j++) {
          weights[j] += static_cast<double>(g[j] * ((x[j] - mean) * rstd));
          biases[j] += static_cast<double>(g[j]);
        }
      }
      for (int64_t j = 0; j < width; j++) {
        dweight[j] += weights[j];
        dbias[j] += biases[j];
        weights[j] = biases[j] = 0;
      }
    }
    for (int64_t j = 0; j < width; j++) {
      weightGradient[begin + j] = static_cast<T>(dweight[j]);
      biasGradient[begin + j] = static_cast<T>(dbias[j]);
    }
  });
  return Status::OK;
}

}  // namespace

Status runLayerNorm(Command& command) { return command.flag() ? layerNorm<double>(command) : layerNorm<float>(command); }
Status runLayerNormGrad(Command& command) { return command.flag() ? layerNormGrad<double>(command) : layerNormGrad<float>(command); }

}  // namespace opt::OPT_ISA
