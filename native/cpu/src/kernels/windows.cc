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

// Neighbouring outputs of a pool that are computed together: windows of any stride are then looked at in vectors.
constexpr int64_t RUN = 16;

/**
 * Where the taps of each output column lie in a row of the image, for rows that are filled up to whole runs. A tap on padding lies
 * where the nearest tap inside does: the same pixel twice in a row changes nothing.
 */
class TapColumns {
 public:
  explicit TapColumns(const Window& window)
      : columns_(ceilDivide(window.outWidth, RUN) * RUN), places_(window.kernelX * columns_) {
    if (!places_) return;
    for (int64_t column = 0; column < columns_; column++) {
      const int64_t first = smaller(column, window.outWidth - 1) * window.strideX - window.paddingX;
      const int64_t skipped = first < 0 ? ceilDivide(-first, window.dilationX) : 0;
      for (int64_t tap = 0; tap < window.kernelX; tap++) {
        const int64_t x = first + tap * window.dilationX;
        const int64_t past = x < window.width ? 0 : ceilDivide(x - window.width + 1, window.dilationX);
        const int64_t place = x < 0 ? first + skipped * window.dilationX : x - past * window.dilationX;
        places_[tap * columns_ + column] = static_cast<int32_t>(place < 0 ? 0 : smaller(place, window.width - 1));
      }
    }
  }

  explicit operator bool() const { return static_cast<bool>(places_); }
  const int32_t* of(int64_t tap, int64_t column) { return places_.data() + tap * columns_ + column; }

 private:
  int64_t columns_;
  Scratch<int32_t> places_;
};

/** The largest values and their places in the plane, of RUN neighbouring outputs from column `column` of row `outY`. */
template <typename T>
void largestOfRun(const Window& window, TapColumns& taps, const T* image, int64_t outY, int64_t column, T* largest, int32_t* winner) {
  T best[RUN];
  int32_t at[RUN];
  for (int64_t i = 0; i < RUN; i++) best[i] = -INFINITY, at[i] = -1;
  for (int64_t tapY = 0; tapY < window.kernelY; tapY++) {
    const int64_t y = outY * window.strideY + tapY * window.dilationY - window.paddingY;
    if (y < 0 || y >= window.height) continue;
    const T* row = image + y * window.width;
    const auto start = static_cast<int32_t>(y * window.width);
    for (int64_t tapX = 0; tapX < window.kernelX; tapX++) {
      const int32_t* places = taps.of(tapX, column);
      T values[RUN];
      for (int64_t i = 0; i < RUN; i++) values[i] = row[places[i]];
      for (int64_t i = 0; i < RUN; i++) {
        const bool wins = (at[i] < 0) | (values[i] > best[i]) | (values[i] != values[i]);
        best[i] = wins ? values[i] : best[i];
        at[i] = wins ? start + places[i] : at[i];
      }
    }
  }
  const auto count = static_cast<size_t>(smaller(RUN, window.outWidth - column));
  std::memcpy(largest, best, count * sizeof(T));
  std::memcpy(winner, at, count * sizeof(int32_t));
}

template <typename T>
Status maxPool2d(Command& command) {
  const Window window(command);
  const T* input = command.pointer<const T>();
  T* output = command.pointer<T>();
  int32_t* indices = command.pointer<int32_t>();
  TapColumns taps(window);
  if (!taps) return Status::OUT_OF_MEMORY;
  const int64_t work = window.taps() * window.outWidth;
  parallelFor(window.planes * window.outHeight, grainOf(2 * work), command.threads, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* image = input + row / window.outHeight * window.plane();
      for (int64_t column = 0; column < window.outWidth; column += RUN) {
        const int64_t at = row * window.outWidth + column;
        largestOfRun(window, taps, image, row % window.outHeight, column, output + at, indices + at);
      }
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
