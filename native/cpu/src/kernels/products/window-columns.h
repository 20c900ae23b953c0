// The windows of images as the right side of a product: packed from the images, without columns in memory.
#pragma once
#include "kernels/products/matmul-pack.h"
#include "kernels/vector.h"
#include "kernels/window.h"

namespace opt::OPT_ISA {

/** `count` pixels of a row of `size` from `x` on in steps of `stride`; those outside are 0. */
template <typename T>
inline void copyRun(const T* row, int64_t x, int64_t stride, int64_t size, int64_t count, T* to) {
  int64_t first = 0, end = count;
  if (x < 0 || x + (count - 1) * stride >= size) Window::inside(x, stride, size, count, first, end);
  for (int64_t i = 0; i < first; i++) to[i] = 0;
  if (stride == 1) {
    copyFew<LANES<T>>(row + x + first, end - first, to + first);
  } else {
    for (int64_t i = first; i < end; i++) to[i] = row[x + i * stride];
  }
  for (int64_t i = end; i < count; i++) to[i] = 0;
}

/** A place in a window: its channel, and where it lies beside the window's corner. */
struct Tap {
  Tap(const Window& window, int64_t index)
      : window(window), channel(index / window.taps()), y(index % window.taps() / window.kernelX), x(index % window.kernelX) {}

  void next() {
    if (++x < window.kernelX) return;
    x = 0;
    if (++y < window.kernelY) return;
    y = 0;
    channel++;
  }

  /** `count` windows of a row from (outY, outX) on, in the planes of an image. */
  template <typename T>
  void copy(const T* image, int64_t outY, int64_t outX, int64_t count, T* to) const {
    const int64_t row = outY * window.strideY + y * window.dilationY - window.paddingY;
    if (row < 0 || row >= window.height) {
      for (int64_t i = 0; i < count; i++) to[i] = 0;
      return;
    }
    const int64_t column = outX * window.strideX + x * window.dilationX - window.paddingX;
    copyRun(image + channel * window.plane() + row * window.width, column, window.strideX, window.width, count, to);
  }

  const Window& window;
  int64_t channel, y, x;
};

template <typename T>
struct WindowColumns {
  const T* images;
  const Window& window;
  /** The product's columns are the places in windows and its steps go along the windows of all images; else the other way around, in one image. */
  bool transposed;

  int64_t imageSize() const { return window.channels * window.plane(); }
};

/** The left side of a product along the windows of all images: `rows` rows of each, as long as it has windows. */
template <typename T>
struct ImageRows {
  const T* data;
  int64_t rows, windows;
};

/** As of an operand whose rows go along all images. */
template <typename T>
inline void packSteps(const ImageRows<T>& left, int64_t begin, int64_t count, int64_t k, int64_t steps, T* panel, int64_t width) {
  for (int64_t done = 0; done < steps;) {
    const int64_t image = (k + done) / left.windows, at = (k + done) % left.windows, run = smaller(left.windows - at, steps - done);
    packSteps(Operand<T>{left.data + image * left.rows * left.windows, left.windows, true}, begin, count, at, run, panel + done * width, width);
    done += run;
  }
}

/** Steps `begin` to `begin + depth` of `count` columns of image `item`, as a panel of `width`. */
template <typename T, int64_t MOST>
inline void packPanel(const WindowColumns<T>& right, int64_t item, int64_t column, int64_t count, int64_t begin, int64_t depth, T* panel,
                      int64_t width) {
  const Window& window = right.window;
  const int64_t outWidth = window.outWidth;
  if (right.transposed) {
    constexpr int64_t STEPS = 8 * PACKED_STEPS;
    T rows[MOST * STEPS];
    for (int64_t k = 0; k < depth; k += STEPS) {
      const int64_t steps = smaller(STEPS, depth - k);
      Tap tap(window, column);
      for (int64_t i = 0; i < count; i++, tap.next()) {
        const int64_t at = (begin + k) % window.outPlane();
        const T* image = right.images + (begin + k) / window.outPlane() * right.imageSize();
        int64_t outY = at / outWidth, outX = at % outWidth;
        for (int64_t done = 0; done < steps;) {
          const int64_t run = smaller(outWidth - outX, steps - done);
          tap.copy(image, outY, outX, run, rows + i * STEPS + done);
          done += run;
          outX = 0;
          if (++outY < window.outHeight) continue;
          outY = 0;
          image += right.imageSize();
        }
      }
      packSteps(Operand<T>{rows, STEPS, true}, 0, count, 0, steps, panel + k * width, width);
    }
    return;
  }
  const T* image = right.images + item * right.imageSize();
  const int64_t firstY = column / outWidth, firstX = column % outWidth;
  Tap tap(window, begin);
  for (int64_t k = 0; k < depth; k++, tap.next(), panel += width) {
    int64_t outY = firstY, outX = firstX;
    for (int64_t done = 0; done < count; outY++, outX = 0) {
      const int64_t run = smaller(outWidth - outX, count - done);
      tap.copy(image, outY, outX, run, panel + done);
      done += run;
    }
    for (int64_t i = count; i < width; i++) panel[i] = 0;
  }
}

}  // namespace opt::OPT_ISA
