// Sliding windows over images: unfold, fold and max pooling. Planes (one channel of one image) are independent.
#include <type_traits>
#include <utility>

#include "commands.h"
#include "kernels/arithmetic.h"
#include "kernels/parallel.h"
#include "kernels/vector.h"
#include "kernels/window.h"

namespace opt::OPT_ISA {
namespace {

// Neighbouring windows that are pooled together. No more than 256 bits: what this file is compiled for with AVX-512, too.
template <typename T>
constexpr int64_t RUN = (VECTOR_BYTES < 32 ? VECTOR_BYTES : 32) / sizeof(T);
// For narrower images: no vector has less than 128 bits.
template <typename T>
constexpr int64_t SHORT_RUN = 16 / sizeof(T);

/** The largest value of each window and its place in the plane. Of equal values the first wins, of NaNs the last. */
template <typename T, int64_t COUNT>
struct Largest {
  using Place = std::conditional_t<sizeof(T) == sizeof(int32_t), int32_t, int64_t>;
  using Values = Vector<T, COUNT>;
  using Places = Vector<Place, COUNT>;
  Values values;
  Places places;

  void take(const Largest& other) {
    const auto wins = (other.values > values) | (other.values != other.values);
    values = wins ? other.values : values;
    places = wins ? other.places : places;
  }

  void store(T* toValues, int32_t* toPlaces) const {
    storeVector(toValues, values);
    storeVector(toPlaces, __builtin_convertvector(places, Vector<int32_t, COUNT>));
  }
};

/** Of 2 * COUNT neighbours every other, from the first on (FIRST = 0) or the second (FIRST = 1). */
template <int FIRST, int64_t COUNT, typename T>
inline Vector<T, COUNT> everyOther(const T* from) {
  const auto a = loadVector<Vector<T, COUNT>>(from), b = loadVector<Vector<T, COUNT>>(from + COUNT);
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return Vector<T, COUNT>(__builtin_shufflevector(a, b, (2 * I + FIRST)...));
  }(std::make_integer_sequence<int, COUNT>{});
}

/**
 * Where the taps of each output column lie in a row of the image, for rows that are filled up to a run. A tap on padding lies
 * where the nearest tap inside does: the same pixel twice in a row changes nothing.
 */
class TapColumns {
 public:
  TapColumns(const Window& window, int64_t run)
      : columns_(larger(window.outWidth, run)), places_(window.kernelX * columns_) {
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

/** A row of pairs, at least COUNT of them: the last vector overlaps the one before. */
template <int64_t COUNT, typename T>
void poolPairs(const Window& window, TapColumns&, const T* image, int64_t outY, T* values, int32_t* places) {
  using Found = Largest<T, COUNT>;
  using Place = typename Found::Place;
  typename Found::Places corners;
  for (int i = 0; i < COUNT; i++) corners[i] = 2 * i;
  const auto width = static_cast<Place>(window.width);
  for (int64_t next = 0; next < window.outWidth; next += COUNT) {
    const int64_t column = smaller(next, window.outWidth - COUNT), start = 2 * (outY * window.width + column);
    const T *top = image + start, *bottom = top + width;
    Found found{everyOther<0, COUNT>(top), corners};
    found.take({everyOther<1, COUNT>(top), corners + 1});
    found.take({everyOther<0, COUNT>(bottom), corners + width});
    found.take({everyOther<1, COUNT>(bottom), corners + (width + 1)});
    found.places += static_cast<Place>(start);
    found.store(values + column, places + column);
  }
}

/** A row of any windows. */
template <typename T>
void poolRow(const Window& window, TapColumns& taps, const T* image, int64_t outY, T* values, int32_t* places) {
  constexpr int64_t COUNT = RUN<T>;
  using Found = Largest<T, COUNT>;
  for (int64_t next = 0; next < window.outWidth; next += COUNT) {
    const int64_t column = larger<int64_t>(0, smaller(next, window.outWidth - COUNT));
    Found found{typename Found::Values{} - static_cast<T>(INFINITY), typename Found::Places{} - 1};
    bool isFirst = true;
    for (int64_t tapY = 0; tapY < window.kernelY; tapY++) {
      const int64_t y = outY * window.strideY + tapY * window.dilationY - window.paddingY;
      if (y < 0 || y >= window.height) continue;
      const T* row = image + y * window.width;
      const auto start = static_cast<typename Found::Place>(y * window.width);
      for (int64_t tapX = 0; tapX < window.kernelX; tapX++) {
        const int32_t* columns = taps.of(tapX, column);
        Found other;
        for (int i = 0; i < COUNT; i++) other.values[i] = row[columns[i]];
        other.places = start + __builtin_convertvector(loadVector<Vector<int32_t, COUNT>>(columns), typename Found::Places);
        if (isFirst) {
          found = other;
        } else {
          found.take(other);
        }
        isFirst = false;
      }
    }
    if (window.outWidth >= COUNT) {
      found.store(values + column, places + column);
      continue;
    }
    for (int64_t i = 0; i < window.outWidth; i++) values[i] = found.values[i], places[i] = static_cast<int32_t>(found.places[i]);
  }
}

template <typename T>
Status unfold(const UnfoldFields<T>& given, int threads) {
  const Window window(given.window);
  const int64_t work = window.taps() * window.outPlane();
  parallelFor(window.planes(), grainOf(work), threads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const T* image = given.input + p * window.plane();
      T* columns = given.output + p * work;
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
Status fold(const FoldFields<T>& given, int threads) {
  const Window window(given.window);
  const int64_t work = window.taps() * window.outPlane();
  parallelFor(window.planes(), grainOf(work), threads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const T* columns = given.input + p * work;
      T* image = given.output + p * window.plane();
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
Status maxPool2d(const MaxPool2dFields<T>& given, int threads) {
  const Window window(given.window);
  TapColumns taps(window, RUN<T>);
  if (!taps) return Status::OUT_OF_MEMORY;
  const bool isPairs = window.isPairs() && window.outWidth >= SHORT_RUN<T>;
  const auto pool = !isPairs ? poolRow<T> : window.outWidth < RUN<T> ? poolPairs<SHORT_RUN<T>, T> : poolPairs<RUN<T>, T>;
  const int64_t work = window.taps() * window.outWidth;
  parallelFor(window.planes() * window.outHeight, grainOf(work), threads, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* image = given.input + row / window.outHeight * window.plane();
      const int64_t at = row * window.outWidth;
      pool(window, taps, image, row % window.outHeight, given.output + at, given.indices + at);
    }
  });
  return Status::OK;
}

template <typename T>
Status maxPool2dGrad(const MaxPool2dGradFields<T>& given, int threads) {
  const Window window(given.window);
  parallelFor(window.planes(), grainOf(window.plane() + window.outPlane()), threads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      T* image = given.output + p * window.plane();
      for (int64_t i = 0; i < window.plane(); i++) image[i] = 0;
      for (int64_t i = p * window.outPlane(); i < (p + 1) * window.outPlane(); i++) {
        const int64_t at = given.indices[i];
        if (at >= 0 && at < window.plane()) image[at] += given.gradient[i];
      }
    }
  });
  return Status::OK;
}

}  // namespace

OPT_RUN(UnfoldFields, unfold)
OPT_RUN(FoldFields, fold)
OPT_RUN(MaxPool2dFields, maxPool2d)
OPT_RUN(MaxPool2dGradFields, maxPool2dGrad)

}  // namespace opt::OPT_ISA
