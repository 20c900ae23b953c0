// The one thread pool of the process, shared by all its JavaScript threads.
#pragma once
#include <cstdint>

namespace opt {

/** Work on part number `part`, done by thread number `thread` of those that share the work. Must not throw. */
using Body = void (*)(void* context, int64_t part, int thread);

/**
 * Runs `body` on parts 0 to `parts` - 1 with up to `threads` threads, the caller being one, and returns when all are done.
 * Each thread has its own share of neighbouring parts; who is done early helps the others.
 */
void runParts(int64_t parts, int threads, Body body, void* context);

}  // namespace opt
