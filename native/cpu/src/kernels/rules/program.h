// Epilogues: programs that matrix products apply to their elements while those are in the cache.
#pragma once
#include <memory>

#include "commands.h"

namespace opt::OPT_ISA {

// Elements that a program computes at a time.
constexpr int64_t PROGRAM_BLOCK = 512;

/** Part of an item of a product: `rows` x `columns` elements from (row, column) on. */
struct Box {
  int64_t item, row, column, rows, columns;
};

template <typename T>
class Epilogue {
 public:
  virtual ~Epilogue() = default;

  /** Where the product is stored. It is null if the output is an operand: the kernel then sets it to memory of its own. */
  T* product = nullptr;

  virtual void apply(const Box& box, int thread) = 0;
  /** Computes elements `begin` to `end` of the whole output. */
  virtual void applyTo(int64_t begin, int64_t end, int thread) = 0;
};

/** The epilogue of a product. Null if there is no memory. */
template <typename T>
std::unique_ptr<Epilogue<T>> epilogueOf(const MatmulFields<T>& given, int threads);

}  // namespace opt::OPT_ISA
