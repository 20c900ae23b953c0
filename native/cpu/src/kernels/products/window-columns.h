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

/** Windows that follow each other in an image: `count` from number `first` on. */
struct Run {
  Run(const Window& window, int64_t first, int64_t count)
      : first(first), count(count), y(first / window.outWidth), x(first % window.outWidth), lastY((first + count - 1) / window.outWidth) {}

  int64_t first, count, y, x, lastY;
};

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

  /** This place of a run's windows, in an image. */
  template <typename T>
  void copy(const T* image, const Run& run, T* to) const {
    const int64_t besideY = y * window.dilationY - window.paddingY, besideX = x * window.dilationX - window.paddingX;
    const T* plane = image + channel * window.plane();
    const int64_t at = run.first + besideY * window.width + besideX;
    const bool isInside = run.y + besideY >= 0 && run.lastY + besideY < window.height && at >= 0 && at + run.count <= window.plane();
    if (isInside && window.outWidth == window.width && window.strideX == 1 && window.strideY == 1) {
      copyFew<LANES<T>>(plane + at, run.count, to);
      // What came from the rows above and below lies beside the image.
      const int64_t edge = besideX < 0 ? -besideX : besideX, start = besideX < 0 ? 0 : window.width - edge;
      for (int64_t row = start - run.x; edge > 0 && row < run.count; row += window.width) {
        for (int64_t i = larger<int64_t>(row, 0); i < smaller(row + edge, run.count); i++) to[i] = 0;
      }
      return;
    }
    int64_t outX = run.x;
    for (int64_t done = 0, outY = run.y; done < run.count; outY++, outX = 0) {
      const int64_t count = smaller(window.outWidth - outX, run.count - done), row = outY * window.strideY + besideY;
      if (row < 0 || row >= window.height) {
        for (int64_t i = 0; i < count; i++) to[done + i] = 0;
      } else {
        copyRun(plane + row * window.width, outX * window.strideX + besideX, window.strideX, window.width, count, to + done);
      }
      done += count;
    }
  }

  const Window& window;
  int64_t channel, y, x;
};

#if defined(__AVX2__)
/** Up to MOST windows side by side, a pixel apart: the numbers at one place of all of them lie side by side in the image, too. */
template <int MOST>
class Neighbours {
 public:
  /** Whether an image's windows are such, as many in a row as it has pixels, and have few enough places. */
  static bool fit(const Window& window) {
    const bool isDense = window.strideX == 1 && window.strideY == 1 && window.outWidth == window.width;
    return isDense && window.kernelX <= TAPS && window.kernelY <= TAPS;
  }

  Neighbours(const Window& window, const Run& run) : run_(run) {
    for (int64_t done = 0, y = run.y, x = run.x; done < run.count; y++, x = 0) {
      const int64_t count = smaller(window.outWidth - x, run.count - done);
      for (int64_t tap = 0; tap < window.kernelY; tap++) {
        const int64_t row = y + tap * window.dilationY - window.paddingY;
        if (row >= 0 && row < window.height) set(rows_[tap], done, done + count);
      }
      for (int64_t tap = 0; tap < window.kernelX; tap++) {
        const int64_t beside = tap * window.dilationX - window.paddingX;
        set(columns_[tap], done + larger<int64_t>(0, -beside - x), done + smaller(count, window.width - beside - x));
      }
      done += count;
    }
  }

  /** A place's numbers in whole vectors: zeros behind the last. */
  template <typename T>
  void copy(const Tap& tap, const T* image, T* to) const {
    const Window& window = tap.window;
    const int64_t besideY = tap.y * window.dilationY - window.paddingY, besideX = tap.x * window.dilationX - window.paddingX;
    const T* from = image + tap.channel * window.plane() + run_.first + besideY * window.width + besideX;
    for (int64_t i = 0; i < run_.count; i += LANES<T>) {
      const uint64_t inside = (rows_[tap.y][i / BITS] & columns_[tap.x][i / BITS]) >> (i % BITS);
      storeVector(to + i, loadWhere(from + i, inside));
    }
  }

 private:
  static constexpr int64_t TAPS = 8, BITS = 64;
  using Bits = std::array<uint64_t, (MOST + BITS - 1) / BITS>;

  static void set(Bits& bits, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t next = smaller(end, (i / BITS + 1) * BITS), count = next - i;
      bits[i / BITS] |= (count == BITS ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << (i % BITS);
      i = next;
    }
  }

  const Run& run_;
  /** Whether the row and the column of a place are inside, for each window. */
  Bits rows_[TAPS] = {}, columns_[TAPS] = {};
};
#endif

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

/** Places of a run's windows from `tap` on: calls `next(i)` for where place number `i` of `count` goes, in whole vectors. */
template <int MOST, typename T, typename Next>
inline void copyPlaces(const Window& window, const T* image, const Run& run, Tap tap, int64_t count, const Next& next) {
#if defined(__AVX2__)
  if (Neighbours<MOST>::fit(window)) {
    const Neighbours<MOST> neighbours(window, run);
    for (int64_t i = 0; i < count; i++, tap.next()) neighbours.copy(tap, image, next(i));
    return;
  }
#endif
  for (int64_t i = 0; i < count; i++, tap.next()) tap.copy(image, run, next(i));
}

/** Steps `begin` to `begin + depth` of `count` columns of image `item`, each `width` after the one before; zeros from `count` to `end`. */
template <typename T, int64_t MOST>
inline void packPanel(const WindowColumns<T>& right, int64_t item, int64_t column, int64_t count, int64_t begin, int64_t depth, T* panel,
                      int64_t width, int64_t end) {
  const Window& window = right.window;
  if (right.transposed) {
    // Whole vectors may end behind the last step.
    constexpr int64_t STEPS = 8 * PACKED_STEPS, APART = STEPS + LANES<T>;
    T rows[MOST * APART];
    for (int64_t k = 0; k < depth; k += STEPS) {
      const int64_t steps = smaller(STEPS, depth - k);
      for (int64_t done = 0; done < steps;) {
        const int64_t first = (begin + k + done) % window.outPlane();
        const T* image = right.images + (begin + k + done) / window.outPlane() * right.imageSize();
        const Run run(window, first, smaller(window.outPlane() - first, steps - done));
        copyPlaces<STEPS>(window, image, run, Tap(window, column), count, [&](int64_t i) { return rows + i * APART + done; });
        done += run.count;
      }
      packSteps(Operand<T>{rows, APART, true}, 0, count, 0, steps, panel + k * width, width, end);
    }
    return;
  }
  const T* image = right.images + item * right.imageSize();
  copyPlaces<MOST>(window, image, Run(window, column, count), Tap(window, begin), depth, [&](int64_t k) { return panel + k * width; });
  for (int64_t k = 0; k < depth && count < end; k++) {
    for (int64_t i = count; i < end; i++) panel[k * width + i] = 0;
  }
}

}  // namespace opt::OPT_ISA
