// Sliding windows over images: unfold, fold and max pooling. Planes (one channel of one image) are independent.
#include <cstring>

#include "kernels/arithmetic.h"
#include "kernels/command.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

struct Window {
  int64_t planes, height, width, outHeight, outWidth;
  int64_t kernelY, kernelX, strideY, strideX, paddingY, paddingX, dilationY, dilationX;

  explicit Window(Command& command)
      : planes(command.integer()),
        height(command.integer()),
        width(command.integer()),
        outHeight(command.integer()),
        outWidth(command.integer()),
        kernelY(command.integer()),
        kernelX(command.integer()),
        strideY(command.integer()),
        strideX(command.integer()),
        paddingY(command.integer()),
        paddingX(command.integer()),
        dilationY(command.integer()),
        dilationX(command.integer()) {}

  int64_t plane() const { return height * width; }
  int64_t outPlane() const { return outHeight * outWidth; }
  int64_t taps() const { return kernelY * kernelX; }

  /** The outputs [first, end) whose input position `out` * stride + offset lies in [0, size). */
  static void inside(int64_t offset, int64_t stride, int64_t size, int64_t outSize, int64_t& first, int64_t& end) {
    first = offset < 0 ? ceilDivide(-offset, stride) : 0;
    end = offset < size ? smaller(outSize, (size - 1 - offset) / stride + 1) : 0;
    if (first > end) first = end;
  }

  /**
   * Calls `row(column, input, count)` for each tap and output row: `count` elements of the columns from `column` on belong to
   * input elements from `input` on in steps of strideX. `clear(column, count)` is called for the rest, which is padding.
   */
  template <typename Row, typename Clear>
  void forEachRow(const Row& row, const Clear& clear) const {
    for (int64_t tap = 0; tap < taps(); tap++) {
      const int64_t offsetY = tap / kernelX * dilationY - paddingY, offsetX = tap % kernelX * dilationX - paddingX;
      int64_t first, end;
      inside(offsetX, strideX, width, outWidth, first, end);
      for (int64_t outY = 0; outY < outHeight; outY++) {
        const int64_t y = outY * strideY + offsetY;
        const int64_t column = tap * outPlane() + outY * outWidth;
        if (y < 0 || y >= height) {
          clear(column, outWidth);
          continue;
        }
        clear(column, first);
        row(column + first, y * width + first * strideX + offsetX, end - first);
        clear(column + end, outWidth - end);
      }
    }
  }
};

template <typename T>
Status unfold(Command& command) {
  const Window window(command);
  const T* input = command.pointer<const T>();
  T* output = command.pointer<T>();
  const int64_t work = window.taps() * window.outPlane();
  parallelFor(window.planes, grainOf(work), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const T* image = input + p * window.plane();
      T* columns = output + p * work;
      window.forEachRow(
          [=](int64_t column, int64_t at, int64_t count) {
            for (int64_t i = 0; i < count; i++) columns[column + i] = image[at + i * window.strideX];
          },
          [=](int64_t column, int64_t count) {
            for (int64_t i = 0; i < count; i++) columns[column + i] = 0;
          });
    }
  });
  return Status::OK;
}

template <typename T>
Status fold(Command& command) {
  const Window window(command);
  const T* input = command.pointer<const T>();
  T* output = command.pointer<T>();
  const int64_t work = window.taps() * window.outPlane();
  parallelFor(window.planes, grainOf(work), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const T* columns = input + p * work;
      T* image = output + p * window.plane();
      for (int64_t i = 0; i < window.plane(); i++) image[i] = 0;
      window.forEachRow(
          [=](int64_t column, int64_t at, int64_t count) {
            for (int64_t i = 0; i < count; i++) image[at + i * window.strideX] += columns[column + i];
          },
          [](int64_t, int64_t) {});
    }
  });
  return Status::OK;
}

template <typename T>
Status maxPool2d(Command& command) {
  const Window window(command);
  const T* input = command.pointer<const T>();
  T* output = command.pointer<T>();
  int32_t* indices = command.pointer<int32_t>();
  const int64_t work = window.taps() * window.outPlane();
  parallelFor(window.planes, grainOf(2 * work), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const T* image = input + p * window.plane();
      T* largest = output + p * window.outPlane();
      int32_t* winner = indices + p * window.outPlane();
      for (int64_t i = 0; i < window.outPlane(); i++) winner[i] = -1;
      const int64_t outPlane = window.outPlane();
      window.forEachRow(
          [=](int64_t column, int64_t at, int64_t count) {
            const int64_t out = column % outPlane;
            for (int64_t i = 0; i < count; i++) {
              const T value = image[at + i * window.strideX], best = largest[out + i];
              const bool wins = (winner[out + i] < 0) | (value > best) | ((value != value) & (best == best));
              largest[out + i] = wins ? value : best;
              winner[out + i] = wins ? static_cast<int32_t>(at + i * window.strideX) : winner[out + i];
            }
          },
          [](int64_t, int64_t) {});
    }
  });
  return Status::OK;
}

template <typename T>
Status maxPool2dGrad(Command& command) {
  const Window window(command);
  const T* gradient = command.pointer<const T>();
  const int32_t* indices = command.pointer<const int32_t>();
  T* output = command.pointer<T>();
  parallelFor(window.planes, grainOf(window.plane() + window.outPlane()), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      T* image = output + p * window.plane();
      for (int64_t i = 0; i < window.plane(); i++) image[i] = 0;
      for (int64_t i = p * window.outPlane(); i < (p + 1) * window.outPlane(); i++) {
        const int64_t at = indices[i];
        if (at >= 0 && at < window.plane()) image[at] += gradient[i];
      }
    }
  });
  return Status::OK;
}

}  // namespace

Status runUnfold(Command& command) { return command.flag() ? unfold<double>(command) : unfold<float>(command); }
Status runFold(Command& command) { return command.flag() ? fold<double>(command) : fold<float>(command); }
Status runMaxPool2d(Command& command) { return command.flag() ? maxPool2d<double>(command) : maxPool2d<float>(command); }
Status runMaxPool2dGrad(Command& command) { return command.flag() ? maxPool2dGrad<double>(command) : maxPool2dGrad<float>(command); }

}  // namespace opt::OPT_ISA
