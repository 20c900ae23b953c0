// Launches of the update rules that were compiled ahead: all chunks of all tensors of a group are one loop.
#include "kernels/wide.h"

#include "commands.h"
#include "kernels/rules/packed-rule.h"
#include "kernels/parallel.h"
#include "kernels/rows/rows.h"
#include "kernels/rules/modification.h"
#include "kernels/rules/rule-blocks.h"

namespace opt::OPT_ISA {
namespace {

/** The update of elements `begin` to `end` of one tensor. */
template <typename T>
using RuleFunction = void (*)(T* const* buffers, const T* scalars, int64_t begin, int64_t end);

struct Rule {
  RuleFunction<float> f32;
  RuleFunction<double> f64;
  PackedRule packed;
};

#include "rules.inc"

// Elements of a part, for rules of a handful of buffers: some 100 KB, a few microseconds.
constexpr int64_t GRAIN = 8192;
// Parts meet at multiples of this within a tensor: two threads never write one cache line of aligned memory, of 16-bit elements either.
constexpr int64_t LINE = 32;
static_assert(GRAIN % PACKED_BLOCK == 0);

// Tensors as short as a table's rows lie anywhere: memory is asked for what comes so many tensors later.
constexpr int64_t AHEAD = 4;
constexpr int64_t SHORT_BYTES = 1024;

/** A rule as a launch computes it. */
template <typename T>
struct Update {
  RuleFunction<T> rule;
  const T* scalars;
  Modification<T> modification;

  /** A block, of which the new parameter or the outcome goes to `out`. */
  void run(T** at, T* out, int64_t n) const {
    if (!modification.isGiven) return rule(at, scalars, 0, n);
    alignas(64) T way[BLOCK];
    std::fill(way, way + n, T(-0.0)); // what is added to it is the update, to the bit
    T* const param = at[0];
    at[0] = way;
    rule(at, scalars, 0, n);
    at[0] = param;
    modification.apply(way, at[1], param, out, n);
  }
};

/** The update of elements `from` to `to` of one tensor, a block at a time: stored in fewer bits, modified, or with rewrites of the gradient. */
template <typename T>
void updateInBlocks(const Update<T>& update, const double* addresses, int64_t buffers, const Slices& slices, const Rewrites& rewrites,
                    int64_t from, int64_t to) {
  RuleBlocks<T, MAX_BUFFERS> blocks(addresses, buffers, buffers, slices, rewrites);
  for (int64_t at = from; at < to; at += BLOCK) {
    const int64_t n = smaller(BLOCK, to - at);
    blocks.load(at, n, smaller(BLOCK, to - at - n));
    update.run(blocks.at, blocks.at[0], n);
    blocks.store(at, n);
  }
}

/** The sum of squares of what a rule would write into its last buffer, in elements `from` to `to` of one tensor: a chunk, in its order. */
template <typename T>
double sumOfOutcomes(const Update<T>& update, const double* addresses, int64_t inputs, const Slices& slices, const Rewrites& rewrites,
                     int64_t from, int64_t to) {
  RuleBlocks<T, MAX_BUFFERS> blocks(addresses, inputs, slices.count, slices, rewrites);
  alignas(64) T outcomes[BLOCK], states[MAX_BUFFERS][BLOCK];
  double lanes[LANES_OF_SUM] = {};
  for (int64_t at = from; at < to; at += BLOCK) {
    const int64_t n = smaller(BLOCK, to - at);
    const int64_t following = smaller(BLOCK, to - at - n);
    blocks.load(at, n, following);
    // A processor that reads little at a time waits for most of it.
    for (int64_t b = 1; b < inputs; b++) {
      if (slices.formats[2 * b] == 0 && slices.formats[2 * b + 1] != 0) prefetchSlice(0, addresses[b], sizeof(T), at + n, following);
    }
    blocks.at[inputs] = outcomes;
    // The rule of a modified one writes its state.
    for (int64_t b = 2; update.modification.isGiven && b < inputs; b++) {
      blocks.at[b] = static_cast<T*>(std::memcpy(states[b], blocks.at[b], static_cast<size_t>(n) * sizeof(T)));
    }
    update.run(blocks.at, outcomes, n);
    const int64_t whole = ceilDivide(n, LANES_OF_SUM) * LANES_OF_SUM;
    std::fill(outcomes + n, outcomes + whole, T(0));
    for (int64_t i = 0; i < whole; i += LANES_OF_SUM) {
      for (int64_t j = 0; j < LANES_OF_SUM; j++) lanes[j] += static_cast<double>(outcomes[i + j]) * static_cast<double>(outcomes[i + j]);
    }
  }
  return sumOfLanes(lanes);
}

/** Sums of squares of the outcomes of each tensor, as sums of their elements are added up. */
template <typename T>
Status launchSums(const Update<T>& update, const Tensors& tensors, const Slices& slices, const Rewrites& rewrites, int64_t inputs, int threads) {
  const auto lengthOf = [&](int64_t t) { return static_cast<int64_t>(tensors.starts[t + 1] - tensors.starts[t]); };
  struct Piece {
    const double* own;
    int64_t from, to;
    double sum;
  };
  int64_t chunks = 0;
  for (int64_t t = 0; t < tensors.count; t++) chunks += ceilDivide(lengthOf(t), CHUNK);
  Scratch<Piece> pieces(chunks);
  if (!pieces) return Status::OUT_OF_MEMORY;
  Piece* next = pieces.data();
  for (int64_t t = 0; t < tensors.count; t++) {
    for (int64_t at = 0; at < lengthOf(t); at += CHUNK) *next++ = {tensors.records + t * slices.width, at, smaller(lengthOf(t), at + CHUNK), 0};
  }
  // From the end on: caches still have what was stepped last, and will have what is stepped next.
  parallelFor(chunks, 1, chunks == 1 ? 1 : threads, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      Piece& piece = pieces[chunks - 1 - k];
      piece.sum = sumOfOutcomes(update, piece.own, inputs, slices, rewrites, piece.from, piece.to);
    }
  });
  next = pieces.data();
  for (int64_t t = 0; t < tensors.count; t++) {
    double sum = 0;
    for (int64_t k = ceilDivide(lengthOf(t), CHUNK); k > 0; k--) sum += next++->sum;
    *address<T>(tensors.records[t * slices.width + inputs]) = static_cast<T>(sum);
  }
  return Status::OK;
}

template <typename T>
Status launchRule(const RuleFields& given, RuleFunction<T> Rule::*function, int threads) {
  const Rule& rule = RULES[given.number];
  const int64_t buffers = given.buffers;
  T scalars[MAX_SCALARS];
  for (int64_t s = 0; s < given.scalars.count; s++) scalars[s] = static_cast<T>(given.scalars[s]);
  const Update<T> update{rule.*function, scalars, Modification<T>(given.modification)};
  const Rewrites rewrites{given.rewrites.count / 2, given.rewrites.data};
  for (int64_t k = 0; k < rewrites.count; k++) {
    const bool isGuard = static_cast<Rewrite>(rewrites.pairs[2 * k]) == Rewrite::GUARD;
    if (isGuard && rewrites.pairs[2 * k + 1] > 0) return Status::OK;
  }
  Slices slices{buffers, nullptr, buffers, {}};
  if (const int64_t stored = given.formats.count / 2; stored > 0) slices = {stored, given.formats.data, stored, {}};
  if (slices.formats != nullptr && isRandom(slices.formats[0])) slices.width++;
  slices.stores.keys = keysOf(given.keys);
  const std::optional<Codecs> codecs = codecsOf(given.codebooks);
  if (codecs) slices.stores.codecs = &*codecs;
  const Tensors tensors(given.tensors);
  if (given.sums) return launchSums(update, tensors, slices, rewrites, buffers - 1, threads);
  bool isPipelined = false;
  if constexpr (sizeof(T) == sizeof(float)) isPipelined = codecs && !update.modification.isGiven && rule.packed.fits && rule.packed.fits(scalars, slices, buffers);
  parallelFor(tensors.total(), GRAIN, threads, [&](int64_t begin, int64_t end) {
    tensors.forEach(begin, end, codecs ? PACKED_BLOCK : LINE, [&](int64_t t, int64_t from, int64_t to) {
      const double* own = tensors.records + t * slices.width;
      const auto bytes = static_cast<int64_t>((tensors.starts[t + 1] - tensors.starts[t]) * sizeof(T));
      if (bytes <= SHORT_BYTES && t + AHEAD < tensors.count) {
        for (int64_t s = 0; s < slices.count; s++) prefetch(address<char>(own[AHEAD * slices.width + s]), bytes);
      }
      if (slices.formats != nullptr) {
        const int64_t whole = isPipelined ? (to - from) / PACKED_BLOCK * PACKED_BLOCK : 0;
        if constexpr (sizeof(T) == sizeof(float)) {
          if (whole > 0) rule.packed.update(scalars, own, slices, rewrites, from, from + whole);
        }
        updateInBlocks(update, own, buffers, slices, rewrites, from + whole, to);
        return;
      }
      T* pointers[MAX_BUFFERS];
      for (int64_t b = 0; b < buffers; b++) pointers[b] = address<T>(own[b]);
      update.rule(pointers, scalars, from, to);
    });
  });
  return Status::OK;
}

}  // namespace

Status run(const RuleFields& given, int threads) {
  return given.isDouble ? launchRule<double>(given, &Rule::f64, threads) : launchRule<float>(given, &Rule::f32, threads);
}

}  // namespace opt::OPT_ISA
