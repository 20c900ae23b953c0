// Launches of the update rules that were compiled ahead: all chunks of all tensors of a group are one loop.
#include "kernels/wide.h"

#include "commands.h"
#include "kernels/rules/packed-rule.h"
#include "kernels/parallel.h"
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

/** The update of elements `from` to `to` of one tensor, a block at a time: stored in fewer bits, or with rewrites of the gradient. */
template <typename T>
void updateInBlocks(RuleFunction<T> update, const T* scalars, const double* addresses, int64_t buffers, const Slices& slices,
                    const Rewrites& rewrites, int64_t from, int64_t to) {
  RuleBlocks<T, MAX_BUFFERS> blocks(addresses, buffers, buffers, slices, rewrites);
  for (int64_t at = from; at < to; at += BLOCK) {
    const int64_t n = smaller(BLOCK, to - at);
    blocks.load(at, n, smaller(BLOCK, to - at - n));
    update(blocks.at, scalars, 0, n);
    blocks.store(at, n);
  }
}

template <typename T>
Status launchRule(const RuleFields& given, RuleFunction<T> Rule::*function, int threads) {
  const Rule& rule = RULES[given.number];
  const RuleFunction<T> update = rule.*function;
  const int64_t buffers = given.buffers;
  T scalars[MAX_SCALARS];
  for (int64_t s = 0; s < given.scalars.count; s++) scalars[s] = static_cast<T>(given.scalars[s]);
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
  bool isPipelined = false;
  if constexpr (sizeof(T) == sizeof(float)) isPipelined = codecs && rule.packed.fits && rule.packed.fits(scalars, slices, buffers);
  const Tensors tensors(given.tensors);
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
        updateInBlocks(update, scalars, own, buffers, slices, rewrites, from + whole, to);
        return;
      }
      T* pointers[MAX_BUFFERS];
      for (int64_t b = 0; b < buffers; b++) pointers[b] = address<T>(own[b]);
      update(pointers, scalars, from, to);
    });
  });
  return Status::OK;
}

}  // namespace

Status run(const RuleFields& given, int threads) {
  return given.isDouble ? launchRule<double>(given, &Rule::f64, threads) : launchRule<float>(given, &Rule::f32, threads);
}

}  // namespace opt::OPT_ISA
