// A sequence through an LSTM and its gradient. Weights are packed once for all places; of each place the units are shared out to the
// threads, and what is done by element follows the product while it is in the cache. The words are those of the ops, one by one.
#include "commands.h"
#include "kernels/products/block-product.h"
#include "kernels/functions.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"
#include "kernels/workspace.h"

namespace opt::OPT_ISA {
namespace {

// Multiplications of a place that are worth a thread.
constexpr int64_t WORK = 1 << 17;
// Elements between rows of a left side beyond its width: rows a power of two apart would share few lines of the cache.
constexpr int64_t APART = 16;
// Parts a thread, so that the last ones even out.
constexpr int64_t PARTS = 2;
constexpr int64_t GATES = 4;

thread_local Workspace workspace;

template <typename T>
inline T sigmoid(T x) {
  return 1 / (1 + exp(-x));
}

struct Sequence : SequenceSizesFields {
  Sequence(const SequenceSizesFields& sizes, int most) : SequenceSizesFields(sizes) {
    const int64_t work = GATES * batch * width * width;
    threads = static_cast<int>(larger<int64_t>(1, smaller<int64_t>(most, work / WORK)));
  }

  int64_t state() const { return batch * width; }
  /** Rows of a left side, which is read by tiles. */
  int64_t rows() const { return ceilDivide(batch, static_cast<int64_t>(BLOCK_ROWS)) * BLOCK_ROWS; }
  /** The place that is gone through as number `step`. */
  int64_t place(int64_t step) const { return reverse ? length - 1 - step : step; }

  /** Calls `body(begin, end)` for units of all the width, in multiples of `unit`. */
  template <typename Body>
  void forUnits(int64_t unit, const Body& body) const {
    const int64_t blocks = ceilDivide(width, unit);
    parallelFor(blocks, ceilDivide(blocks, threads * PARTS), threads, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; block++) body(block * unit, smaller(width, block * unit + unit));
    });
  }

  int threads;
};

/** The rows of the weight for LANES units: of each step the units' numbers for all gates, in two panels. */
template <typename T>
void packUnits(const T* weight, int64_t width, int64_t begin, int64_t end, T* to) {
  constexpr int64_t UNITS = LANES<T>, PANEL = BLOCK_PANEL<T>;
  static_assert(PANEL == 2 * UNITS, "a panel holds two gates");
  for (int64_t gate = 0; gate < GATES; gate++) {
    T* const panel = to + gate / 2 * PANEL * width + gate % 2 * UNITS;
    for (int64_t unit = 0; unit < UNITS; unit++) {
      const T* row = weight + (gate * width + begin + unit) * width;
      for (int64_t k = 0; k < width; k++) panel[k * PANEL + unit] = begin + unit < end ? row[k] : 0;
    }
  }
}

template <typename T>
Status lstm(const LstmFields<T>& given, int threads) {
  const Sequence s(given.sizes, threads);
  const T *inputs = given.inputs, *weight = given.weight, *bias = given.bias, *firstHidden = given.hidden, *firstCell = given.cell;
  T *results = given.results, *cells = given.cells, *gates = given.gates;
  constexpr int64_t UNITS = LANES<T>;
  const int64_t width = s.width, rowStep = width + APART, size = GATES * UNITS * width;
  const int64_t packedBytes = Parts<T>::bytes(ceilDivide(width, UNITS) * size), hiddenBytes = Parts<T>::bytes(s.rows() * rowStep);
  char* const memory = workspace.reserve(packedBytes + 2 * hiddenBytes);
  if (memory == nullptr) return Status::OUT_OF_MEMORY;
  Parts<T> parts(memory);
  T* const packed = parts.take(ceilDivide(width, UNITS) * size);
  T* hidden[2] = {parts.take(s.rows() * rowStep), parts.take(s.rows() * rowStep)};
  for (int64_t i = 0; i < s.rows() * rowStep; i++) hidden[0][i] = hidden[1][i] = 0;
  for (int64_t b = 0; b < s.batch; b++) std::memcpy(hidden[0] + b * rowStep, firstHidden + b * width, sizeof(T) * static_cast<size_t>(width));
  s.forUnits(UNITS, [&](int64_t begin, int64_t end) { packUnits(weight, width, begin, end, packed + begin / UNITS * size); });
  for (int64_t step = 0; step < s.length; step++) {
    const int64_t at = s.place(step) * s.state();
    const T* before = hidden[step % 2];
    T* after = hidden[(step + 1) % 2];
    const T* lastCell = step == 0 ? firstCell : cells + s.place(step - 1) * s.state();
    s.forUnits(UNITS, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < s.batch; row += BLOCK_ROWS) {
        const int64_t rows = smaller<int64_t>(BLOCK_ROWS, s.batch - row);
        T z[BLOCK_ROWS][GATES * UNITS];
        multiplyBlock<T, 0, 1>(rows, GATES * UNITS, width, before + row * rowStep, 0, packed + begin / UNITS * size, z[0], GATES * UNITS, false,
                               rowStep);
        for (int64_t r = 0; r < rows; r++) {
          const int64_t b = row + r, own = b * width + begin, of = GATES * (at + b * width) + begin;
          const T* line = z[r];
          T* kept = gates + of;
          OPT_INDEPENDENT
          for (int64_t u = 0; u < end - begin; u++) {
            const T i = sigmoid(inputs[of + u] + bias[begin + u] + line[u]);
            const T f = sigmoid(inputs[of + width + u] + bias[width + begin + u] + line[UNITS + u]);
            const T g = tanh(inputs[of + 2 * width + u] + bias[2 * width + begin + u] + line[2 * UNITS + u]);
            const T o = sigmoid(inputs[of + 3 * width + u] + bias[3 * width + begin + u] + line[3 * UNITS + u]);
            const T next = f * lastCell[own + u] + i * g;
            const T shown = o * tanh(next);
            kept[u] = i;
            kept[width + u] = f;
            kept[2 * width + u] = g;
            kept[3 * width + u] = o;
            cells[at + own + u] = next;
            results[at + own + u] = shown;
            after[b * rowStep + begin + u] = shown;
          }
        }
      }
    });
  }
  workspace.trim();
  return Status::OK;
}

/** Backwards through the places: what a cell and a result hand on goes to the gates, and through the weight to the result before. */
template <typename T>
Status lstmGrad(const LstmGradFields<T>& given, int threads) {
  const Sequence s(given.sizes, threads);
  const T *weight = given.weight, *firstCell = given.cell, *cells = given.cells, *gates = given.gates, *gradient = given.gradient;
  T *inputsGradient = given.inputsGradient, *firstHiddenGradient = given.firstHiddenGradient, *ofCell = given.firstCellGradient;
  constexpr int64_t UNITS = BLOCK_PANEL<T>;
  const int64_t width = s.width, depth = GATES * width, rowStep = depth + APART, size = UNITS * depth;
  const int64_t packedBytes = Parts<T>::bytes(ceilDivide(width, UNITS) * size), gatesBytes = Parts<T>::bytes(s.rows() * rowStep);
  char* const memory = workspace.reserve(packedBytes + 2 * gatesBytes);
  if (memory == nullptr) return Status::OUT_OF_MEMORY;
  Parts<T> parts(memory);
  T* const packed = parts.take(ceilDivide(width, UNITS) * size);
  T* ofGates[2] = {parts.take(s.rows() * rowStep), parts.take(s.rows() * rowStep)};
  for (int64_t i = 0; i < s.rows() * rowStep; i++) ofGates[0][i] = ofGates[1][i] = 0;
  std::memcpy(ofCell, given.cellGradient, sizeof(T) * static_cast<size_t>(s.state()));
  s.forUnits(UNITS, [&](int64_t begin, int64_t end) {
    packRight(Operand<T>{weight, width, false}, begin, end - begin, 0, depth, packed + begin / UNITS * size);
  });
  for (int64_t step = s.length - 1; step >= -1; step--) {
    const T* after = ofGates[(step + 2) % 2];
    T* here = ofGates[(step + 1) % 2];
    const int64_t at = step < 0 ? 0 : s.place(step) * s.state();
    const T* lastCell = step <= 0 ? firstCell : cells + s.place(step - 1) * s.state();
    s.forUnits(UNITS, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < s.batch; row += BLOCK_ROWS) {
        const int64_t rows = smaller<int64_t>(BLOCK_ROWS, s.batch - row);
        T ofHidden[BLOCK_ROWS][UNITS] = {};
        if (step < s.length - 1) {
          multiplyBlock<T, 0, 1>(rows, end - begin, depth, after + row * rowStep, 0, packed + begin / UNITS * size, ofHidden[0], UNITS, false,
                                 rowStep);
        }
        for (int64_t r = 0; r < rows; r++) {
          const int64_t b = row + r, own = b * width + begin, of = GATES * (at + b * width) + begin;
          if (step < 0) {
            for (int64_t u = 0; u < end - begin; u++) firstHiddenGradient[own + u] = ofHidden[r][u];
            continue;
          }
          const T* kept = gates + of;
          T* line = here + b * rowStep + begin;
          OPT_INDEPENDENT
          for (int64_t u = 0; u < end - begin; u++) {
            const T i = kept[u], f = kept[width + u], g = kept[2 * width + u], o = kept[3 * width + u];
            const T shown = tanh(cells[at + own + u]);
            const T h = ofHidden[r][u] + gradient[at + own + u];
            const T c = ofCell[own + u] + h * o * (1 - shown * shown);
            const T di = c * g * i * (1 - i), df = c * lastCell[own + u] * f * (1 - f), dg = c * i * (1 - g * g), dO = h * shown * o * (1 - o);
            line[u] = inputsGradient[of + u] = di;
            line[width + u] = inputsGradient[of + width + u] = df;
            line[2 * width + u] = inputsGradient[of + 2 * width + u] = dg;
            line[3 * width + u] = inputsGradient[of + 3 * width + u] = dO;
            ofCell[own + u] = c * f;
          }
        }
      }
    });
  }
  workspace.trim();
  return Status::OK;
}

}  // namespace

OPT_RUN(LstmFields, lstm)
OPT_RUN(LstmGradFields, lstmGrad)

}  // namespace opt::OPT_ISA
