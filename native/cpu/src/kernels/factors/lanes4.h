// Sums of products in four lanes, as core's backend/host-kernels.ts says.
#pragma once

// Inlined everywhere: no call passes vectors wider than SSE2's registers.
#pragma GCC diagnostic ignored "-Wpsabi"

#include "kernels/loops.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

using Lanes4 = Vector<double, 4>;

OPT_INLINE double sumOf(const Lanes4& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

}  // namespace opt::OPT_ISA
