// Says of the loop that follows: its elements do not depend on each other, even where arrays are the same memory.
#pragma once

#if defined(__clang__)
#define OPT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define OPT_INDEPENDENT _Pragma("GCC ivdep")
#endif
