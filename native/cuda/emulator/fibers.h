// Runs a block of threads as fibers on one thread, switching by hand: a barrier costs nanoseconds.
#pragma once
#include <functional>

/** Calls body as thread 0 to threads - 1 of the current block; __syncthreads hands over to the next. */
void runBlock(unsigned threads, const std::function<void()>& body);
