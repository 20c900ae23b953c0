// Included first by a file whose loops compute more than they move: with AVX-512 they are written for 512 bits instead of 256,
// which takes half the time on rules of Adam's kind and on exponentials. The bits of results are the same.
#pragma once
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif
