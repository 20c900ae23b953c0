// Sliding windows over images: unfold, fold, max pooling and its gradient. Gradients gather, so that sums have one order.
#include "block.cuh"

struct Window {
  Index planes, height, width, outHeight, outWidth, kernelY, kernelX, strideY, strideX, paddingY, paddingX, dilationY, dilationX;
};

/** Columns of one plane are consecutive: (plane, tap) is a row of outHeight * outWidth. */
template <typename T>
__device__ void unfold(const T* image, T* columns, const Window& w) {
  const Index outPlane = w.outHeight * w.outWidth, taps = w.kernelY * w.kernelX;
  for (Index e = firstElement(); e < w.planes * taps * outPlane; e += elementStride()) {
    const Index out = e % outPlane, tap = e / outPlane % taps, plane = e / outPlane / taps;
    const Index y = out / w.outWidth * w.strideY + tap / w.kernelX * w.dilationY - w.paddingY;
    const Index x = out % w.outWidth * w.strideX + tap % w.kernelX * w.dilationX - w.paddingX;
    const bool inside = y >= 0 && y < w.height && x >= 0 && x < w.width;
    columns[e] = inside ? image[(plane * w.height + y) * w.width + x] : T(0);
  }
}

template <typename T>
__device__ void fold(const T* columns, T* image, const Window& w) {
  const Index plane = w.height * w.width, outPlane = w.outHeight * w.outWidth, taps = w.kernelY * w.kernelX;
  for (Index e = firstElement(); e < w.planes * plane; e += elementStride()) {
    const Index y = e % plane / w.width, x = e % w.width;
    double sum = 0;
    for (Index tap = 0; tap < taps; tap++) {
      const Index shiftedY = y + w.paddingY - tap / w.kernelX * w.dilationY, shiftedX = x + w.paddingX - tap % w.kernelX * w.dilationX;
      if (shiftedY < 0 || shiftedX < 0 || shiftedY % w.strideY != 0 || shiftedX % w.strideX != 0) continue;
      const Index outY = shiftedY / w.strideY, outX = shiftedX / w.strideX;
      if (outY < w.outHeight && outX < w.outWidth) sum += static_cast<double>(columns[(e / plane * taps + tap) * outPlane + outY * w.outWidth + outX]);
    }
    image[e] = static_cast<T>(sum);
  }
}

template <typename T>
__device__ void maxPool2d(const T* image, T* output, int* indices, const Window& w) {
  const Index outPlane = w.outHeight * w.outWidth, taps = w.kernelY * w.kernelX;
  for (Index e = firstElement(); e < w.planes * outPlane; e += elementStride()) {
    const Index outY = e % outPlane / w.outWidth, outX = e % w.outWidth;
    const T* plane = image + e / outPlane * w.height * w.width;
    T best = 0;
    Index at = -1;
    for (Index tap = 0; tap < taps; tap++) {
      const Index y = outY * w.strideY + tap / w.kernelX * w.dilationY - w.paddingY;
      const Index x = outX * w.strideX + tap % w.kernelX * w.dilationX - w.paddingX;
      if (y < 0 || y >= w.height || x < 0 || x >= w.width) continue;
      const T value = plane[y * w.width + x];
      if (at < 0 || value > best || (value != value && best == best)) {
        best = value;
        at = y * w.width + x;
      }
    }
    output[e] = best;
    indices[e] = static_cast<int>(at);
  }
}

/** Every pixel asks the windows that may have chosen it. */
template <typename T>
__device__ void maxPool2dGrad(const T* gradient, const int* indices, T* output, const Window& w) {
  const Index plane = w.height * w.width, outPlane = w.outHeight * w.outWidth;
  const auto firstWindow = [](Index at, Index kernel, Index dilation, Index stride) {
    const Index reach = at - (kernel - 1) * dilation;
    return reach <= 0 ? 0 : (reach + stride - 1) / stride;
  };
  for (Index e = firstElement(); e < w.planes * plane; e += elementStride()) {
    const Index pixel = e % plane, y = pixel / w.width + w.paddingY, x = pixel % w.width + w.paddingX;
    const Index base = e / plane * outPlane;
    double sum = 0;
    for (Index outY = firstWindow(y, w.kernelY, w.dilationY, w.strideY); outY < w.outHeight && outY * w.strideY <= y; outY++) {
      for (Index outX = firstWindow(x, w.kernelX, w.dilationX, w.strideX); outX < w.outWidth && outX * w.strideX <= x; outX++) {
        const Index at = base + outY * w.outWidth + outX;
        if (indices[at] == pixel) sum += static_cast<double>(gradient[at]);
      }
    }
    output[e] = static_cast<T>(sum);
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(unfold_##DTYPE)(const T* image, T* columns, Window window) { unfold(image, columns, window); }            \
  OPT_KERNEL(fold_##DTYPE)(const T* columns, T* image, Window window) { fold(columns, image, window); }                \
  OPT_KERNEL(maxPool2d_##DTYPE)(const T* image, T* output, int* indices, Window window) {                              \
    maxPool2d(image, output, indices, window);                                                                         \
  }                                                                                                                    \
  OPT_KERNEL(maxPool2dGrad_##DTYPE)(const T* gradient, const int* indices, T* output, Window window) {                 \
    maxPool2dGrad(gradient, indices, output, window);                                                                  \
  }
OPT_EACH_DTYPE(DEFINE)
