// What the addon sees of the kernels: one entry point per instruction set.
#pragma once
#include <cstdint>

#include "protocol.h"

namespace opt {

/** Carries out one launch. `command` is written by packages/kernels-cpu/src/command.ts. Everything in it was checked there. */
using Run = Status (*)(const double* command);

#define OPT_DECLARE(ISA) \
  namespace ISA {        \
  Status run(const double* command); \
  }
OPT_DECLARE(sse2)
OPT_DECLARE(avx2)
OPT_DECLARE(avx512)
OPT_DECLARE(neon)
#undef OPT_DECLARE

}  // namespace opt
