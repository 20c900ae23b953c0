// Files read by libuv's threads, checksums included, so that JavaScript's thread is free meanwhile.
#pragma once
#include <node_api.h>

#include "crc32.h"

namespace opt {

/** Adds `readFile`, where the system can. `crc32` is the processor's fastest. */
void exportFiles(napi_env env, napi_value exports, Crc32 crc32);

}  // namespace opt
