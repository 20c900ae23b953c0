// Attention and its gradient: the words of its ops, one by one. Scores lie [query][key], and only those of a few queries are there at a time.
#include "kernels/wide.h"

#include "kernels/products/block-product.h"
#include "commands.h"
#include "kernels/functions.h"
#include "kernels/parallel.h"
#include "kernels/rows/rows.h"
#include "kernels/workspace.h"

namespace opt::OPT_ISA {
namespace {

// Queries of a block, of which the scores are computed at a time.
constexpr int64_t ROWS = 64;
// Blocks of queries that share what was packed of keys and values.
constexpr int64_t SHARED = 8;

/** Scratch of all threads. */
thread_local Workspace workspace;

/** Where the items of an operand are. */
struct Places {
  int64_t outer, head, row;
};

template <typename T>
struct Sizes : AttentionSizesFields {
  explicit Sizes(const AttentionSizesFields& given) : AttentionSizesFields(given), scale(static_cast<T>(given.scale)) {
    Places* const operands[] = {&query, &key, &value, &output, &dquery, &dkey, &dvalue};
    for (int i = 0; i < 7; i++)
      *operands[i] = {int64_t(given.strides[3 * i]), int64_t(given.strides[3 * i + 1]), int64_t(given.strides[3 * i + 2])};
  }

  /** Where an item of an operand begins. */
  int64_t first(const Places& places, int64_t item) const { return item / heads * places.outer + item % heads * places.head; }

  /** How many keys `count` queries from `row` on see. */
  int64_t seen(int64_t row, int64_t count) const { return causal ? smaller(row + count, keys) : keys; }

  /** How far apart rows of scores lie: an odd number of lanes' blocks, so that a column of them is spread over a cache. */
  int64_t stride() const { return (ceilDivide(keys, LANES_OF_SUM) | 1) * LANES_OF_SUM; }

  int64_t scores(int64_t rows) const { return (rows + BLOCK_ROWS) * stride(); }

  Places query, key, value, output, dquery, dkey, dvalue;
  T scale;
};

template <typename T>
void scale(T* x, int64_t count, T factor) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < count; i++) x[i] *= factor;
}

template <typename T>
void fill(T* x, int64_t begin, int64_t end, T value) {
  for (int64_t i = begin; i < end; i++) x[i] = value;
}

/** A block of queries by keys: rows of the left side by what is packed of keys or values. */
template <typename T>
struct Block {
  static int64_t bytes(const Sizes<T>& s) {
    return Parts<T>::bytes(ROWS * larger(s.width, s.columns)) + Parts<T>::bytes(s.width * paddedColumns<T>(s.keys));
  }

  Block(const Sizes<T>& s, Parts<T>& parts, const T* key) : s(s) {
    left = parts.take(ROWS * larger(s.width, s.columns));
    keys = parts.take(s.width * paddedColumns<T>(s.keys));
    packRight(Operand<T>{key, s.key.row, true}, 0, s.keys, 0, s.width, keys);
  }

  /** to = rows x right of the keys that they see, and some more. */
  void multiply(Operand<T> matrix, int64_t depth, int64_t row, int64_t rows, T factor, const T* right, T* to) const {
    packLeft(matrix, row, rows, depth, left);
    if (factor != 1) scale(left, ceilDivide(rows, static_cast<int64_t>(BLOCK_ROWS)) * BLOCK_ROWS * depth, factor);
    const int64_t columns = smaller(s.keys, ceilDivide(s.seen(row, rows), BLOCK_PANEL<T>) * BLOCK_PANEL<T>);
    multiplyBlock<T, 1, BLOCK_ROWS>(rows, columns, depth, left, BLOCK_ROWS * depth, right, to, s.stride(), false);
  }

  /** Calls f(at, seen, end) for each row: where it lies, how many keys its query sees, and how many products read. */
  template <typename Function>
  void forLines(int64_t row, int64_t rows, const Function& f) const {
    const int64_t end = smaller(s.stride(), s.seen(row, rows) + ROWS);
    for (int64_t r = 0; r < rows; r++) f(r * s.stride(), s.seen(row + r, 1), end);
  }

  /** y = what queries take of each key's value. */
  void weigh(const T* query, int64_t row, int64_t rows, T* y) const {
    multiply({query, s.query.row, true}, s.width, row, rows, s.scale, keys, y);
    forLines(row, rows, [y](int64_t at, int64_t seen, int64_t end) {
      T* line = y + at;
      const int64_t count = ceilDivide(seen, LANES_OF_SUM) * LANES_OF_SUM;
      fill(line, seen, count, T(-INFINITY));
      fill(line, count, end, T(0));
      const T largest = largestOf(line, count) + T(0);
      OPT_INDEPENDENT
      for (int64_t i = 0; i < count; i++) line[i] = weightOf(line[i] - largest);
      const double sum = sumOf(count, [line](int64_t i) { return line[i]; });
      scale(line, count, static_cast<T>(1 / sum));
    });
  }

  const Sizes<T>& s;
  T *left, *keys;
};

template <typename T>
struct Forward {
  static int64_t bytes(const Sizes<T>& s) {
    return Block<T>::bytes(s) + Parts<T>::bytes(s.keys * paddedColumns<T>(s.columns)) + Parts<T>::bytes(s.scores(ROWS));
  }

  /** Up to SHARED blocks of queries from `first` on, of one item. */
  static void run(const Sizes<T>& s, char* memory, const T* query, const T* key, const T* value, T* output, int64_t first) {
    Parts<T> parts(memory);
    const Block<T> block(s, parts, key);
    T* const values = parts.take(s.keys * paddedColumns<T>(s.columns));
    T* const y = parts.take(s.scores(ROWS));
    packRight(Operand<T>{value, s.value.row, false}, 0, s.columns, 0, s.keys, values);
    const int64_t end = smaller(first + SHARED * ROWS, s.queries);
    for (int64_t row = first; row < end; row += ROWS) {
      const int64_t rows = smaller(ROWS, end - row);
      block.weigh(query, row, rows, y);
      multiplyBlock<T, 0, 1>(rows, s.columns, s.keys, y, BLOCK_ROWS * s.stride(), values, output + row * s.output.row, s.output.row, false,
                             s.stride(), {0, s.seen(row, rows)});
    }
  }
};

template <typename T>
struct Backward {
  /** A piece of the chains over queries, which are done at a time. */
  static int64_t most(const Sizes<T>& s) { return ceilDivide(s.queries, larger<int64_t>(1, piecesOf<T>(s.queries))); }

  static int64_t bytes(const Sizes<T>& s) {
    const int64_t width = paddedColumns<T>(s.width), columns = paddedColumns<T>(s.columns);
    return Block<T>::bytes(s) + Parts<T>::bytes(s.keys * width) + Parts<T>::bytes(s.columns * paddedColumns<T>(s.keys)) +
           Parts<T>::bytes(most(s) * width) + Parts<T>::bytes(most(s) * columns) + 2 * Parts<T>::bytes(s.scores(most(s)));
  }

  /** One item. With y the weights: dvalue = y^T g, dscores = y (g value^T - sum(y g value^T)), dkey = dscores^T query, dquery = dscores key. */
  static void run(const Sizes<T>& s, char* memory, const T* query, const T* key, const T* value, const T* gradient, T* dquery, T* dkey,
                  T* dvalue) {
    Parts<T> parts(memory);
    const Block<T> block(s, parts, key);
    T* const keys = parts.take(s.keys * paddedColumns<T>(s.width));
    T* const values = parts.take(s.columns * paddedColumns<T>(s.keys));
    T* const scaled = parts.take(most(s) * paddedColumns<T>(s.width));
    T* const gradients = parts.take(most(s) * paddedColumns<T>(s.columns));
    T* const y = parts.take(s.scores(most(s)));
    T* const d = parts.take(s.scores(most(s)));
    packRight(Operand<T>{key, s.key.row, false}, 0, s.width, 0, s.keys, keys);
    packRight(Operand<T>{value, s.value.row, true}, 0, s.keys, 0, s.columns, values);
    const int64_t pieces = larger<int64_t>(1, piecesOf<T>(s.queries));
    for (int64_t i = 0; i < pieces; i++) {
      const Range of = piece(s.queries, pieces, i);
      packRight(Operand<T>{query, s.query.row, false}, 0, s.width, of.begin, of.size(), scaled);
      scale(scaled, of.size() * paddedColumns<T>(s.width), s.scale);
      packRight(Operand<T>{gradient, s.output.row, false}, 0, s.columns, of.begin, of.size(), gradients);
      for (int64_t row = of.begin; row < of.end; row += ROWS) {
        const int64_t rows = smaller(ROWS, of.end - row), at = (row - of.begin) * s.stride();
        block.weigh(query, row, rows, y + at);
        block.multiply({gradient, s.output.row, true}, s.columns, row, rows, 1, values, d + at);
        block.forLines(row, rows, [weightsOf = y + at, linesOf = d + at](int64_t place, int64_t seen, int64_t end) {
          const T* weights = weightsOf + place;
          T* line = linesOf + place;
          const int64_t count = ceilDivide(seen, LANES_OF_SUM) * LANES_OF_SUM;
          fill(line, seen, end, T(0));
          const T total = static_cast<T>(sumOf(count, [line, weights](int64_t i) { return line[i] * weights[i]; }));
          OPT_INDEPENDENT
          for (int64_t i = 0; i < count; i++) line[i] = weights[i] * (line[i] - total);
        });
        T* const to = dquery + row * s.dquery.row;
        multiplyBlock<T, 0, 1>(rows, s.width, s.keys, d + at, BLOCK_ROWS * s.stride(), keys, to, s.dquery.row, false, s.stride(),
                               {0, s.seen(row, rows)});
        for (int64_t r = 0; r < rows; r++) scale(to + r * s.dquery.row, s.width, s.scale);
      }
      for (int64_t k = 0; k < s.keys; k += ROWS) {
        const int64_t count = smaller(ROWS, s.keys - k);
        const Range seeing = {s.causal ? larger<int64_t>(0, k - of.begin) : 0, of.size()};
        multiplyBlock<T, 1, 0>(count, s.columns, of.size(), y + k, BLOCK_ROWS, gradients, dvalue + k * s.dvalue.row, s.dvalue.row, i > 0,
                               s.stride(), seeing);
        multiplyBlock<T, 1, 0>(count, s.width, of.size(), d + k, BLOCK_ROWS, scaled, dkey + k * s.dkey.row, s.dkey.row, i > 0, s.stride(), seeing);
      }
    }
  }
};

template <typename T>
Status attention(const AttentionFields<T>& given, int threads) {
  const Sizes<T> s(given.sizes);
  const int64_t groups = ceilDivide(s.queries, SHARED * ROWS);
  char* const memory = workspace.reserve(Forward<T>::bytes(s) * threads);
  if (memory == nullptr) return Status::OUT_OF_MEMORY;
  parallelFor(s.batch * groups, 1, threads, [&](int64_t part, int64_t, int thread) {
    const int64_t item = part / groups;
    Forward<T>::run(s, memory + thread * Forward<T>::bytes(s), given.query + s.first(s.query, item), given.key + s.first(s.key, item),
                    given.value + s.first(s.value, item), given.output + s.first(s.output, item), part % groups * SHARED * ROWS);
  });
  workspace.trim();
  return Status::OK;
}

template <typename T>
Status attentionGrad(const AttentionGradFields<T>& given, int threads) {
  const Sizes<T> s(given.sizes);
  char* const memory = workspace.reserve(Backward<T>::bytes(s) * threads);
  if (memory == nullptr) return Status::OUT_OF_MEMORY;
  parallelFor(s.batch, 1, threads, [&](int64_t item, int64_t, int thread) {
    Backward<T>::run(s, memory + thread * Backward<T>::bytes(s), given.query + s.first(s.query, item), given.key + s.first(s.key, item),
                     given.value + s.first(s.value, item), given.gradient + s.first(s.output, item),
                     given.queryGradient + s.first(s.dquery, item), given.keyGradient + s.first(s.dkey, item),
                     given.valueGradient + s.first(s.dvalue, item));
  });
  workspace.trim();
  return Status::OK;
}

}  // namespace

OPT_RUN(AttentionFields, attention)
OPT_RUN(AttentionGradFields, attentionGrad)

}  // namespace opt::OPT_ISA
