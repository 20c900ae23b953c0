// Rules whose state is packed as optimizers pack it, as one loop: a processor finds in several blocks what it can do at once.
#pragma once
#include <utility>

#include "kernels/rules/lanes.h"
#include "kernels/loops.h"
#include "kernels/rules/packed-block.h"
#include "kernels/rules/rule-blocks.h"

namespace opt::OPT_ISA {

/** A rule with these formats of its state, and the update of whole blocks of one tensor; null where it has no such loop. */
struct PackedRule {
  bool (*fits)(const float* scalars, const Slices& slices, int64_t buffers) = nullptr;
  void (*update)(const float* scalars, const double* addresses, const Slices& slices, const Rewrites& rewrites, int64_t from,
                 int64_t to) = nullptr;
};

inline bool always(const float*) { return true; }

template <auto WHERE, bool... SIGNED>
bool isPackedAs(const float* scalars, const Slices& slices, int64_t buffers) {
  constexpr bool SIGNS[] = {SIGNED...};
  const auto isAs = [&](int64_t b) { return isCoded(slices.formats[2 * b]) && isSigned(slices.formats[2 * b]) == SIGNS[b - 2]; };
  bool all = WHERE(scalars) && !isCoded(slices.formats[0]) && !isCoded(slices.formats[1]);
  for (int64_t b = 2; b < buffers; b++) all = all && isAs(b);
  return all;
}

/**
 * While a block is computed the next one is unpacked, and the one before the last is packed: its scale has been known for a block, so
 * that nothing waits for it. Each stage alone would leave most of a processor idle; blocks of one stage after the other are too long
 * for it to see them together, pieces are not.
 */
template <auto UPDATE, int SCALARS, bool... SIGNED>
void updatePacked(const float* given, const double* addresses, const Slices& slices, const Rewrites& rewrites, int64_t from, int64_t to) {
  constexpr int STATES = sizeof...(SIGNED);
  constexpr int64_t LAG = 2, ROOMS = 4;
  /** `visit<state, whether its codes are signed>()` */
  const auto forEachState = [](const auto& visit) OPT_INLINE_LAMBDA {
    [&]<int... S>(std::integer_sequence<int, S...>) OPT_INLINE_LAMBDA {
      (visit.template operator()<S, SIGNED>(), ...);
    }(std::make_integer_sequence<int, STATES>());
  };
  // Copies that nothing else can reach: stores of elements leave them in registers.
  Lanes scalars[SCALARS + 1];
  for (int s = 0; s < SCALARS; s++) scalars[s] = Lanes(given[s]);
  const Codecs& codecs = *slices.stores.codecs;
  uint8_t* starts[STATES];
  for (int s = 0; s < STATES; s++) starts[s] = address<uint8_t>(addresses[2 + s]) + from / PACKED_BLOCK * PACKED_BYTES;
  const int64_t blocks = (to - from) / PACKED_BLOCK;
  RuleBlocks<float, 2> around(addresses, 2, 2 + STATES, slices, rewrites);
  // A block's room is unpacked into, computed, waits for its scale, and is packed.
  alignas(64) float rooms[ROOMS][STATES][PACKED_BLOCK];
  float inverses[ROOMS][STATES];

  forEachState([&]<int S, bool IS_SIGNED>() {
    const PackedBlock block(starts[S], 0);
    unpackBlock(codecs.of(IS_SIGNED), block.codes, *block.scale, rooms[0][S]);
  });
  for (int64_t b = 0; b < blocks; b++) {
    const bool hasBefore = b >= LAG, hasNext = b + 1 < blocks;
    float(*const now)[PACKED_BLOCK] = rooms[b % ROOMS];
    float(*const next)[PACKED_BLOCK] = rooms[(b + 1) % ROOMS];
    float(*const before)[PACKED_BLOCK] = rooms[(b + ROOMS - LAG) % ROOMS];
    const float* const inversesBefore = inverses[(b + ROOMS - LAG) % ROOMS];
    around.load(from + b * PACKED_BLOCK, PACKED_BLOCK, hasNext ? PACKED_BLOCK : 0);
    float* const param = around.at[0];
    float* const grad = around.at[1];
    const uint8_t *codesNext[STATES];
    uint8_t *codesBefore[STATES];
    float scalesNext[STATES];
    for (int s = 0; s < STATES; s++) {
      codesBefore[s] = PackedBlock(starts[s], b - LAG).codes;
      codesNext[s] = PackedBlock(starts[s], b + 1).codes;
      scalesNext[s] = hasNext ? *PackedBlock(starts[s], b + 1).scale : 0;
    }
    GreatestKey greatest[STATES];
#pragma GCC unroll 1
    for (int64_t j = 0; j < PACKED_BLOCK; j += PACKED_PIECE) {
      // Codes keep the processor from reading ahead by itself. Rooms, or what lies behind memory, cost nothing to ask for.
      prefetch(reinterpret_cast<const char*>(param + PACKED_BLOCK + j), PACKED_PIECE * 4);
      prefetch(reinterpret_cast<const char*>(grad + PACKED_BLOCK + j), PACKED_PIECE * 4);
      for (int s = 0; s < STATES; s++) prefetch(reinterpret_cast<const char*>(codesNext[s] + PACKED_BYTES + j), PACKED_PIECE);
      if (hasBefore) {
        forEachState([&]<int S, bool IS_SIGNED>() OPT_INLINE_LAMBDA {
          codecs.of(IS_SIGNED).template packPiece<IS_SIGNED>(before[S] + j, inversesBefore[S], codesBefore[S] + j);
        });
      }
#pragma GCC unroll 1
      for (int64_t k = j; k < j + PACKED_PIECE; k += Codec::STEP) {
        if (hasNext) {
          forEachState([&]<int S, bool IS_SIGNED>() OPT_INLINE_LAMBDA {
            codecs.of(IS_SIGNED).template unpackStep<IS_SIGNED>(codesNext[S] + k, scalesNext[S], next[S] + k);
          });
        }
        Lanes* buffers[2 + STATES] = {reinterpret_cast<Lanes*>(param + k), reinterpret_cast<Lanes*>(grad + k)};
        for (int s = 0; s < STATES; s++) buffers[2 + s] = reinterpret_cast<Lanes*>(now[s] + k);
        UPDATE(buffers, scalars, 0, Codec::STEP / LANE_COUNT);
        for (int s = 0; s < STATES; s++) greatest[s].take(now[s] + k);
      }
    }
    around.store(from + b * PACKED_BLOCK, PACKED_BLOCK);
    forEachState([&]<int S, bool IS_SIGNED>() OPT_INLINE_LAMBDA {
      const float scale = scaleBlock(greatest[S].get(), now[S], IS_SIGNED, codecs.leastScale);
      *PackedBlock(starts[S], b).scale = scale;
      inverses[b % ROOMS][S] = inverseOf(scale);
    });
  }
  for (int64_t b = larger<int64_t>(0, blocks - LAG); b < blocks; b++) {
    forEachState([&]<int S, bool IS_SIGNED>() {
      const PackedBlock block(starts[S], b);
      packBlock(codecs.of(IS_SIGNED), rooms[b % ROOMS][S], *block.scale, block.codes);
    });
  }
}

/** `UPDATE` of Lanes, which is right for scalars of which WHERE says so; of each state whether its codes are signed. */
template <auto UPDATE, auto WHERE, int SCALARS, bool... SIGNED>
constexpr PackedRule PACKED_RULE = {isPackedAs<WHERE, SIGNED...>, updatePacked<UPDATE, SCALARS, SIGNED...>};

// More than half of the time that rules take to compile goes to these loops: a build for a first look, and x86 processors older
// than 2013, do without, to the same bits.
#if defined(OPT_QUICK) || (defined(__x86_64__) && !defined(__AVX2__))
#define OPT_PACKED_RULE(...) {}
#else
#define OPT_PACKED_RULE(...) PACKED_RULE<__VA_ARGS__>
#endif

}  // namespace opt::OPT_ISA
