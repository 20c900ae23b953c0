#include "files.h"

#if defined(_WIN32)
namespace opt {
void exportFiles(napi_env, napi_value, Crc32) {}
}  // namespace opt
#else
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace opt {
namespace {

/** A core's own cache still has it when its checksum is taken. */
constexpr size_t AT_ONCE = 1 << 18;

/** One on its way. */
struct Reading {
  int file;
  uint8_t* bytes;
  size_t length;
  off_t position;
  Crc32 crc32;
  uint32_t sum = 0;
  bool isWhole = false;
  napi_async_work work = nullptr;
  napi_deferred deferred = nullptr;
  /** Keeps the bytes where they are. */
  napi_ref view = nullptr;
};

/** By a thread of libuv's. */
void execute(napi_env, void* data) {
  Reading& reading = *static_cast<Reading*>(data);
  for (size_t done = 0; done < reading.length;) {
    uint8_t* bytes = reading.bytes + done;
    const ssize_t count = pread(reading.file, bytes, std::min(AT_ONCE, reading.length - done), reading.position + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    reading.sum = reading.crc32(reading.sum, bytes, static_cast<size_t>(count));
    done += static_cast<size_t>(count);
  }
  reading.isWhole = true;
}

/** By JavaScript's thread; where that is ending, nobody hears of it, and what was taken is given back all the same. */
void complete(napi_env env, napi_status, void* data) {
  const std::unique_ptr<Reading> reading(static_cast<Reading*>(data));
  napi_value result = nullptr;
  if (reading->isWhole) napi_create_uint32(env, reading->sum, &result);
  else napi_get_undefined(env, &result);
  napi_resolve_deferred(env, reading->deferred, result);
  napi_delete_reference(env, reading->view);
  napi_delete_async_work(env, reading->work);
}

/** readFile(file, view, position): a promise of the CRC-32 of what fills all of the view; of undefined where the file ends or the system rejects. */
napi_value readFile(napi_env env, napi_callback_info info) {
  napi_value args[3], buffer, name, promise = nullptr;
  size_t count = 3, offset;
  napi_typedarray_type type;
  void* bytes = nullptr;
  double position = 0;
  auto reading = std::make_unique<Reading>();
  void* context = nullptr;
  if (napi_get_cb_info(env, info, &count, args, nullptr, &context) != napi_ok || count != 3 ||
      napi_get_value_int32(env, args[0], &reading->file) != napi_ok ||
      napi_get_typedarray_info(env, args[1], &type, &reading->length, &bytes, &buffer, &offset) != napi_ok ||
      napi_get_value_double(env, args[2], &position) != napi_ok ||
      napi_create_reference(env, args[1], 1, &reading->view) != napi_ok) {
    return nullptr;
  }
  reading->bytes = static_cast<uint8_t*>(bytes);
  reading->position = static_cast<off_t>(position);
  reading->crc32 = reinterpret_cast<Crc32>(context);
  napi_create_promise(env, &reading->deferred, &promise);
  napi_create_string_utf8(env, "opt:readFile", NAPI_AUTO_LENGTH, &name);
  napi_create_async_work(env, nullptr, name, execute, complete, reading.get(), &reading->work);
  napi_queue_async_work(env, reading->work);
  reading.release();  // complete's
  return promise;
}

}  // namespace

void exportFiles(napi_env env, napi_value exports, Crc32 crc32) {
  if (crc32 == nullptr) return;
  napi_value function;
  napi_create_function(env, "readFile", NAPI_AUTO_LENGTH, readFile, reinterpret_cast<void*>(crc32), &function);
  napi_set_named_property(env, exports, "readFile", function);
}

}  // namespace opt
#endif
