// What is done with the update of a rule that was built ahead (core's optimizer/modifications/update.ts), a block at a time.
#pragma once
#include <algorithm>

#include "kernels/arithmetic.h"
#include "kernels/command.h"
#include "kernels/loops.h"

namespace opt::OPT_ISA {

template <typename T>
struct Modification {
  explicit Modification(const Numbers& given) : isGiven(given.count > 0) {
    if (!isGiven) return;
    decay = static_cast<Decay>(given[0]);
    isCautious = given[1] != 0;
    isOnSphere = given[2] != 0;
    outcome = static_cast<Outcome>(given[3]);
    decayBy = static_cast<T>(given[4]);
    cautiousBy = static_cast<T>(given[5]);
    const T length = static_cast<T>(given[7]);
    isFar = isOnSphere && T(0) < length;
    farBy = static_cast<T>(given[6]) * length;
    radiusBy = static_cast<T>(given[8]);
  }

  /** The new parameter, or the outcome, from the update `way`, which is changed. `out` may be `param`. */
  void apply(T* way, const T* grad, const T* param, T* out, int64_t n) const {
    if (isCautious) {
      OPT_INDEPENDENT
      for (int64_t i = 0; i < n; i++) way[i] = select(way[i] * grad[i] < T(0), way[i] * cautiousBy, T(0));
    }
    if (outcome == Outcome::WAY) {
      std::copy(way, way + n, out);
      return;
    }
    const T* start = out;
    if (decay == Decay::NONE) {
      start = param;
    } else if (decay == Decay::EVERYWHERE) {
      OPT_INDEPENDENT
      for (int64_t i = 0; i < n; i++) out[i] = param[i] * decayBy;
    } else {
      OPT_INDEPENDENT
      for (int64_t i = 0; i < n; i++) out[i] = select(T(0) < way[i] * param[i], param[i], param[i] * decayBy);
    }
    if (isFar) {
      OPT_INDEPENDENT
      for (int64_t i = 0; i < n; i++) way[i] = way[i] * farBy;
    }
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = start[i] + way[i];
    if (!isOnSphere || outcome == Outcome::END) return;
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = out[i] * radiusBy;
  }

  bool isGiven, isCautious = false, isOnSphere = false, isFar = false;
  Decay decay = Decay::NONE;
  Outcome outcome = Outcome::NONE;
  T decayBy = 0, cautiousBy = 0, farBy = 0, radiusBy = 0;
};

}  // namespace opt::OPT_ISA
