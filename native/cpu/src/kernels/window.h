// A window that slides over the planes of images.
#pragma once
#include "commands.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {

struct Window : WindowFields {
  explicit Window(const WindowFields& fields) : WindowFields(fields) {}

  int64_t planes() const { return batch * channels; }
  int64_t plane() const { return height * width; }
  int64_t outPlane() const { return outHeight * outWidth; }
  int64_t taps() const { return kernelY * kernelX; }

  /** 2 x 2 pixels side by side, all of them in the image. */
  bool isPairs() const {
    const bool isInside = paddingY == 0 && paddingX == 0 && 2 * outHeight <= height && 2 * outWidth <= width;
    return isInside && kernelY == 2 && kernelX == 2 && strideY == 2 && strideX == 2 && dilationY == 1 && dilationX == 1;
  }

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

}  // namespace opt::OPT_ISA
