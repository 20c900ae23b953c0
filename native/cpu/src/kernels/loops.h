// Says of the loop that follows: its elements do not depend on each other, even where arrays are the same memory.
#pragma once

#if defined(__clang__)
#define OPT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define OPT_INDEPENDENT _Pragma("GCC ivdep")
#endif

/** A step of a loop that is one function whatever its size: calls would cost as much as what they do. */
#define OPT_INLINE [[gnu::always_inline]] inline
/** The same of a lambda, behind its parameters. */
#define OPT_INLINE_LAMBDA __attribute__((always_inline))
/** Of what is rarely called, from many places: it would be built for each. */
#define OPT_APART [[gnu::noinline]]
