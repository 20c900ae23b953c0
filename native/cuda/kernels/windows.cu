// Sliding windows over images: unfold, fold, max pooling and its gradient. Gradients gather, so that sums have one order.
#include "block.cuh"
#include "fields.cuh"

/** Planes are those of all images. */
struct Window : WindowFields {
  __device__ __forceinline__ Index planes() const { return batch * channels; }

  /** Every number that the kernels make of it fits 32 bits. */
  __device__ __forceinline__ bool isSmall() const {
    constexpr Index LIMIT = 1ll << 31;
    const Index reachY = kernelY * dilationY + strideY + paddingY, reachX = kernelX * dilationX + strideX + paddingX;
    return planes() * height * width < LIMIT && planes() * kernelY * kernelX * outHeight * outWidth < LIMIT && height + 2 * reachY < LIMIT &&
           width + 2 * reachX < LIMIT;
  }
};

/** In 32 bits where they do: 64-bit division is slow. */
template <typename Integer>
struct Sizes {
  Integer planes, height, width, outHeight, outWidth, kernelY, kernelX, strideY, strideX, paddingY, paddingX, dilationY, dilationX;

  __device__ __forceinline__ explicit Sizes(const Window& w)
      : planes(static_cast<Integer>(w.planes())), height(static_cast<Integer>(w.height)), width(static_cast<Integer>(w.width)),
        outHeight(static_cast<Integer>(w.outHeight)), outWidth(static_cast<Integer>(w.outWidth)), kernelY(static_cast<Integer>(w.kernelY)),
        kernelX(static_cast<Integer>(w.kernelX)), strideY(static_cast<Integer>(w.strideY)), strideX(static_cast<Integer>(w.strideX)),
        paddingY(static_cast<Integer>(w.paddingY)), paddingX(static_cast<Integer>(w.paddingX)),
        dilationY(static_cast<Integer>(w.dilationY)), dilationX(static_cast<Integer>(w.dilationX)) {}
};

/** Columns of one plane are consecutive: (plane, tap) is a row of outHeight * outWidth. */
template <typename Integer, typename T>
__device__ void unfold(const UnfoldFields<T>& given, const Window& window) {
  const T* image = given.input;
  const Sizes<Integer> w(window);
  const Integer outPlane = w.outHeight * w.outWidth, taps = w.kernelY * w.kernelX;
  const Index size = window.planes() * taps * outPlane;
  for (Index element = firstElement(); element < size; element += elementStride()) {
    const auto e = static_cast<Integer>(element);
    const Integer out = e % outPlane, tap = e / outPlane % taps, plane = e / outPlane / taps;
    const Integer y = out / w.outWidth * w.strideY + tap / w.kernelX * w.dilationY - w.paddingY;
    const Integer x = out % w.outWidth * w.strideX + tap % w.kernelX * w.dilationX - w.paddingX;
    const bool inside = y >= 0 && y < w.height && x >= 0 && x < w.width;
    given.output[element] = inside ? image[(plane * w.height + y) * w.width + x] : T(0);
  }
}

template <typename Integer, typename T>
__device__ void fold(const FoldFields<T>& given, const Window& window) {
  const T* columns = given.input;
  const Sizes<Integer> w(window);
  const Integer plane = w.height * w.width, outPlane = w.outHeight * w.outWidth, taps = w.kernelY * w.kernelX;
  const Index size = window.planes() * plane;
  for (Index element = firstElement(); element < size; element += elementStride()) {
    const auto e = static_cast<Integer>(element);
    const Integer y = e % plane / w.width, x = e % w.width;
    T sum = 0;
    for (Integer tap = 0; tap < taps; tap++) {
      const Integer shiftedY = y + w.paddingY - tap / w.kernelX * w.dilationY, shiftedX = x + w.paddingX - tap % w.kernelX * w.dilationX;
      if (shiftedY < 0 || shiftedX < 0 || shiftedY % w.strideY != 0 || shiftedX % w.strideX != 0) continue;
      const Integer outY = shiftedY / w.strideY, outX = shiftedX / w.strideX;
      if (outY < w.outHeight && outX < w.outWidth) sum += columns[(e / plane * taps + tap) * outPlane + outY * w.outWidth + outX];
    }
    given.output[element] = sum;
  }
}

template <typename Integer, typename T>
__device__ void maxPool2d(const MaxPool2dFields<T>& given, const Window& window) {
  const Sizes<Integer> w(window);
  const Integer outPlane = w.outHeight * w.outWidth, taps = w.kernelY * w.kernelX;
  const Index size = window.planes() * outPlane;
  for (Index element = firstElement(); element < size; element += elementStride()) {
    const auto e = static_cast<Integer>(element);
    const Integer outY = e % outPlane / w.outWidth, outX = e % w.outWidth;
    const T* plane = given.input + e / outPlane * w.height * w.width;
    T best = 0;
    Integer at = -1;
    for (Integer tap = 0; tap < taps; tap++) {
      const Integer y = outY * w.strideY + tap / w.kernelX * w.dilationY - w.paddingY;
      const Integer x = outX * w.strideX + tap % w.kernelX * w.dilationX - w.paddingX;
      if (y < 0 || y >= w.height || x < 0 || x >= w.width) continue;
      const T value = plane[y * w.width + x];
      if (at < 0 || value > best || value != value) {
        best = value;
        at = y * w.width + x;
      }
    }
    given.output[element] = best;
    given.indices[element] = static_cast<int>(at);
  }
}

/** Every pixel asks the windows that may have chosen it. */
template <typename Integer, typename T>
__device__ void maxPool2dGrad(const MaxPool2dGradFields<T>& given, const Window& window) {
  const Sizes<Integer> w(window);
  const Integer plane = w.height * w.width, outPlane = w.outHeight * w.outWidth;
  const Index size = window.planes() * plane;
  const auto firstWindow = [](Integer at, Integer kernel, Integer dilation, Integer stride) -> Integer {
    const Integer reach = at - (kernel - 1) * dilation;
    return reach <= 0 ? 0 : (reach + stride - 1) / stride;
  };
  for (Index element = firstElement(); element < size; element += elementStride()) {
    const auto e = static_cast<Integer>(element);
    const Integer pixel = e % plane, y = pixel / w.width + w.paddingY, x = pixel % w.width + w.paddingX;
    const Integer base = e / plane * outPlane;
    T sum = 0;
    for (Integer outY = firstWindow(y, w.kernelY, w.dilationY, w.strideY); outY < w.outHeight && outY * w.strideY <= y; outY++) {
      for (Integer outX = firstWindow(x, w.kernelX, w.dilationX, w.strideX); outX < w.outWidth && outX * w.strideX <= x; outX++) {
        const Integer at = base + outY * w.outWidth + outX;
        if (given.indices[at] == pixel) sum += given.gradient[at];
      }
    }
    given.output[element] = sum;
  }
}

#define DEFINE_WINDOW(NAME, DTYPE, FIELDS)                                                                             \
  OPT_KERNEL(NAME##_##DTYPE)(FIELDS given) {                                                                           \
    const Window window{given.window};                                                                                 \
    if (window.isSmall()) NAME<int>(given, window);                                                                    \
    else NAME<Index>(given, window);                                                                                   \
  }

#define DEFINE(DTYPE, T)                                                                                               \
  DEFINE_WINDOW(unfold, DTYPE, UnfoldFields<T>)                                                                        \
  DEFINE_WINDOW(fold, DTYPE, FoldFields<T>)                                                                            \
  DEFINE_WINDOW(maxPool2d, DTYPE, MaxPool2dFields<T>)                                                                  \
  DEFINE_WINDOW(maxPool2dGrad, DTYPE, MaxPool2dGradFields<T>)
OPT_EACH_DTYPE(DEFINE)
