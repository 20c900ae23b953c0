// Attention and its gradient. Scores are computed block by block and never leave the caches; of each query the largest score and the sum
// of exponentials go along (Dao et al. 2022). A block's scores lie [key][query], so that what is done by query fills vectors.
#include "kernels/block-product.h"
#include "kernels/command.h"
#include "kernels/functions.h"
#include "kernels/parallel.h"
#include "kernels/workspace.h"

namespace opt::OPT_ISA {
namespace {

// A block of scores: with both sides it fits the second cache, and half of it the first.
constexpr int64_t ROWS = 64, KEYS = 128;
// Blocks of queries that share what was packed of keys and values.
constexpr int64_t SHARED = 8;

/** Scratch of all threads. */
thread_local Workspace workspace;

template <typename T>
struct Sizes {
  explicit Sizes(Command& command) {
    for (int64_t* size : {&batch, &queries, &keys, &width, &columns}) *size = command.integer();
    scale = static_cast<T>(command.number());
    if (width == 0) scale = 0;
    causal = command.flag();
  }

  /** Of the keys from `key` on, at most a block: those that some query of the block from `row` on sees. */
  int64_t seen(int64_t row, int64_t key) const {
    const int64_t last = smaller(row + ROWS, queries);
    const int64_t end = causal ? smaller(last, keys) : keys;
    return larger<int64_t>(0, smaller(KEYS, end - key));
  }

  int64_t batch, queries, keys, width, columns;
  T scale;
  bool causal;
};

/** The scores of a block of queries by `count` keys, of which hidden ones are -infinity, as are those of queries beyond the last. */
template <typename T>
void scoresOf(const Sizes<T>& sizes, const T* packedKeys, const T* packedQueries, int64_t row, int64_t key, int64_t count, T* scores) {
  const int64_t rows = smaller(ROWS, sizes.queries - row);
  multiplyBlock<T, 1, BLOCK_ROWS>(count, rows, sizes.width, packedKeys, BLOCK_ROWS * sizes.width, packedQueries, scores, ROWS, false);
  for (int64_t k = 0; k < count; k++) {
    T* line = scores + k * ROWS;
    OPT_INDEPENDENT
    for (int64_t r = 0; r < ROWS; r++) line[r] *= sizes.scale;
    const int64_t hidden = sizes.causal ? smaller(rows, key + k - row) : 0;
    OPT_INDEPENDENT
    for (int64_t r = 0; r < hidden; r++) line[r] = -INFINITY;
    OPT_INDEPENDENT
    for (int64_t r = rows; r < ROWS; r++) line[r] = -INFINITY;
  }
}

template <typename T>
struct Forward {
  static int64_t bytes(const Sizes<T>& s) {
    return Parts<T>::bytes(KEYS * s.width) + Parts<T>::bytes(KEYS * paddedColumns<T>(s.columns)) + Parts<T>::bytes(ROWS * s.width) +
           Parts<T>::bytes(KEYS * ROWS) + 2 * Parts<T>::bytes(SHARED * ROWS);
  }

  Forward(const Sizes<T>& s, char* memory) : s(s) {
    Parts<T> parts(memory);
    keys = parts.take(KEYS * s.width);
    values = parts.take(KEYS * paddedColumns<T>(s.columns));
    queries = parts.take(ROWS * s.width);
    scores = parts.take(KEYS * ROWS);
    largest = parts.take(SHARED * ROWS);
    sums = parts.take(SHARED * ROWS);
  }

  /** Up to SHARED blocks of queries from `first` on, of one batch. */
  void run(const T* query, const T* key, const T* value, T* output, T* logSums, int64_t first) {
    const int64_t end = smaller(first + SHARED * ROWS, s.queries);
    for (int64_t i = 0; i < SHARED * ROWS; i++) {
      largest[i] = -INFINITY;
      sums[i] = 0;
    }
    for (int64_t k = 0; k < s.keys; k += KEYS) {
      const int64_t most = s.seen(smaller(end - 1, first + (SHARED - 1) * ROWS), k);
      if (most == 0) break;
      packLeft(Operand<T>{key, s.width, true}, k, most, s.width, keys);
      for (int64_t row = first; row < end; row += ROWS) {
        const int64_t count = s.seen(row, k);
        if (count == 0) continue;
        // Panels say how deep they are.
        packRight(Operand<T>{value, s.columns, false}, 0, s.columns, k, count, values);
        packRight(Operand<T>{query, s.width, true}, row, smaller(ROWS, end - row), 0, s.width, queries);
        scoresOf(s, keys, queries, row, k, count, scores);
        add(row, row - first, k > 0, count, output);
      }
    }
    for (int64_t row = first; row < end; row++) {
      const T sum = sums[row - first];
      T* y = output + row * s.columns;
      OPT_INDEPENDENT
      for (int64_t c = 0; c < s.columns; c++) y[c] = s.keys == 0 ? 0 : y[c] / sum;
      logSums[row] = largest[row - first] + log(sum);
    }
  }

 private:
  /** Weighs a block's values by the exponentials of its scores, and what was there before by what the largest score has become. */
  void add(int64_t row, int64_t at, bool isNext, int64_t count, T* output) {
    T* most = largest + at;
    T* total = sums + at;
    T before[ROWS], sum[ROWS], origin[ROWS];
    for (int64_t r = 0; r < ROWS; r++) before[r] = most[r];
    for (int64_t k = 0; k < count; k++) {
      const T* line = scores + k * ROWS;
      OPT_INDEPENDENT
      for (int64_t r = 0; r < ROWS; r++) most[r] = (line[r] > most[r]) | (line[r] != line[r]) ? line[r] : most[r];
    }
    for (int64_t r = 0; r < ROWS; r++) {
      sum[r] = 0;
      // Where all scores so far are -infinity, weights are 0: a later block may have others.
      origin[r] = most[r] == -INFINITY ? 0 : most[r];
    }
    for (int64_t k = 0; k < count; k++) {
      T* line = scores + k * ROWS;
      OPT_INDEPENDENT
      for (int64_t r = 0; r < ROWS; r++) {
        line[r] = weightOf(line[r] - origin[r]);
        sum[r] += line[r];
      }
    }
    const int64_t rows = smaller(ROWS, s.queries - row);
    T* y = output + row * s.columns;
    OPT_INDEPENDENT
    for (int64_t r = 0; r < ROWS; r++) {
      const T share = isNext ? weightOf(before[r] - origin[r]) : 0;
      before[r] = share;
      total[r] = total[r] * share + sum[r];
    }
    if (isNext) {
      for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < s.columns; c++) y[r * s.columns + c] *= before[r];
      }
    }
    multiplyBlock<T, 1, ROWS>(rows, s.columns, count, scores, BLOCK_ROWS, values, y, s.columns, isNext);
  }

  const Sizes<T>& s;
  T *keys, *values, *queries, *scores, *largest, *sums;
};

template <typename T>
Status attention(Command& command) {
  const Sizes<T> s(command);
  const T* query = command.pointer<const T>();
  const T* key = command.pointer<const T>();
  const T* value = command.pointer<const T>();
  T* output = command.pointer<T>();
  T* logSums = command.pointer<T>();
  const int64_t groups = ceilDivide(s.queries, SHARED * ROWS);
  char* const memory = workspace.reserve(Forward<T>::bytes(s) * command.threads);
  if (memory == nullptr) return Status::OUT_OF_MEMORY;
  parallelFor(s.batch * groups, 1, command.threads, [&](int64_t part, int64_t, int thread) {
    const int64_t item = part / groups, rows = item * s.queries, places = item * s.keys;
    Forward<T>(s, memory + thread * Forward<T>::bytes(s))
        .run(query + rows * s.width, key + places * s.width, value + places * s.columns, output + rows * s.columns, logSums + rows,
             part % groups * SHARED * ROWS);
  });
  workspace.trim();
  return Status::OK;
}

/** The sum of a[k] * b[k]. */
template <typename T>
inline T dot(const T* a, const T* b, int64_t count) {
  constexpr int64_t SUMS = 16;
  T sums[SUMS] = {}, total = 0;
  int64_t k = 0;
  for (; k + SUMS <= count; k += SUMS) {
    for (int64_t i = 0; i < SUMS; i++) sums[i] += a[k + i] * b[k + i];
  }
  for (const T sum : sums) total += sum;
  for (; k < count; k++) total += a[k] * b[k];
  return total;
}

template <typename T>
struct Backward {
  static int64_t bytes(const Sizes<T>& s) {
    const int64_t width = paddedColumns<T>(s.width), columns = paddedColumns<T>(s.columns);
    return Parts<T>::bytes(KEYS * s.width) + Parts<T>::bytes(KEYS * s.columns) + Parts<T>::bytes(KEYS * width) +
           2 * Parts<T>::bytes(ROWS * larger(width, columns)) + 2 * Parts<T>::bytes(KEYS * ROWS) + Parts<T>::bytes(s.queries + ROWS);
  }

  Backward(const Sizes<T>& s, char* memory) : s(s) {
    const int64_t width = paddedColumns<T>(s.width), columns = paddedColumns<T>(s.columns);
    Parts<T> parts(memory);
    leftKeys = parts.take(KEYS * s.width);
    leftValues = parts.take(KEYS * s.columns);
    rightKeys = parts.take(KEYS * width);
    byRow = parts.take(ROWS * larger(width, columns));
    byColumn = parts.take(ROWS * larger(width, columns));
    weights = parts.take(KEYS * ROWS);
    ofScores = parts.take(KEYS * ROWS);
    along = parts.take(s.queries + ROWS);
  }

  /** One batch. With w the weights and D = sum(g y) by row: dvalue = w^T g, dscores = w (g value^T - D), and on to query and key. */
  void run(const T* query, const T* key, const T* value, const T* output, const T* gradient, const T* logSums, T* dquery, T* dkey,
           T* dvalue) {
    for (int64_t i = 0; i < s.queries; i++) along[i] = dot(gradient + i * s.columns, output + i * s.columns, s.columns);
    if (s.keys == 0) clear(dquery, s.queries * s.width);
    for (int64_t k = 0; k < s.keys; k += KEYS) {
      const int64_t here = smaller(KEYS, s.keys - k);
      packLeft(Operand<T>{key, s.width, true}, k, here, s.width, leftKeys);
      packLeft(Operand<T>{value, s.columns, true}, k, here, s.columns, leftValues);
      clear(dkey + k * s.width, here * s.width);
      clear(dvalue + k * s.columns, here * s.columns);
      for (int64_t row = 0; row < s.queries; row += ROWS) {
        const int64_t count = s.seen(row, k);
        if (count == 0) continue;
        const int64_t rows = smaller(ROWS, s.queries - row);
        packRight(Operand<T>{query, s.width, true}, row, rows, 0, s.width, byColumn);
        scoresOf(s, leftKeys, byColumn, row, k, count, weights);
        for (int64_t i = 0; i < count; i++) {
          T* line = weights + i * ROWS;
          OPT_INDEPENDENT
          for (int64_t r = 0; r < rows; r++) line[r] = weightOf(line[r] - logSums[row + r]);
          OPT_INDEPENDENT
          for (int64_t r = rows; r < ROWS; r++) line[r] = 0;
        }
        packRight(Operand<T>{gradient, s.columns, false}, 0, s.columns, row, rows, byRow);
        multiplyBlock<T, ROWS, 1>(count, s.columns, rows, weights, BLOCK_ROWS * ROWS, byRow, dvalue + k * s.columns, s.columns, true);
        packRight(Operand<T>{gradient, s.columns, true}, row, rows, 0, s.columns, byColumn);
        multiplyBlock<T, 1, BLOCK_ROWS>(count, rows, s.columns, leftValues, BLOCK_ROWS * s.columns, byColumn, ofScores, ROWS, false);
        for (int64_t i = 0; i < count; i++) {
          const T* weight = weights + i * ROWS;
          T* line = ofScores + i * ROWS;
          OPT_INDEPENDENT
          for (int64_t r = 0; r < rows; r++) line[r] = weight[r] * (line[r] - along[row + r]) * s.scale;
        }
        packRight(Operand<T>{query, s.width, false}, 0, s.width, row, rows, byRow);
        multiplyBlock<T, ROWS, 1>(count, s.width, rows, ofScores, BLOCK_ROWS * ROWS, byRow, dkey + k * s.width, s.width, true);
        packRight(Operand<T>{key, s.width, false}, 0, s.width, k, count, rightKeys);
        multiplyBlock<T, 1, ROWS>(rows, s.width, count, ofScores, BLOCK_ROWS, rightKeys, dquery + row * s.width, s.width, k > 0);
      }
    }
  }

 private:
  static void clear(T* to, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = 0;
  }

  const Sizes<T>& s;
  T *leftKeys, *leftValues, *rightKeys, *byRow, *byColumn, *weights, *ofScores, *along;
};

template <typename T>
Status attentionGrad(Command& command) {
  const Sizes<T> s(command);
  const T* query = command.pointer<const T>();
  const T* key = command.pointer<const T>();
  const T* value = command.pointer<const T>();
  const T* output = command.pointer<const T>();
  const T* gradient = command.pointer<const T>();
  const T* logSums = command.pointer<const T>();
  T* dquery = command.pointer<T>();
  T* dkey = command.pointer<T>();
  T* dvalue = command.pointer<T>();
  char* const memory = workspace.reserve(Backward<T>::bytes(s) * command.threads);
  if (memory == nullptr) return Status::OUT_OF_MEMORY;
  parallelFor(s.batch, 1, command.threads, [&](int64_t item, int64_t, int thread) {
    const int64_t rows = item * s.queries, places = item * s.keys;
    Backward<T>(s, memory + thread * Backward<T>::bytes(s))
        .run(query + rows * s.width, key + places * s.width, value + places * s.columns, output + rows * s.columns,
             gradient + rows * s.columns, logSums + rows, dquery + rows * s.width, dkey + places * s.width, dvalue + places * s.columns);
  });
  workspace.trim();
  return Status::OK;
}

}  // namespace

Status runAttention(Command& command) { return command.flag() ? attention<double>(command) : attention<float>(command); }
Status runAttentionGrad(Command& command) { return command.flag() ? attentionGrad<double>(command) : attentionGrad<float>(command); }

}  // namespace opt::OPT_ISA
