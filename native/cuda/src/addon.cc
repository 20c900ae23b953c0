// The Node-API boundary: libraries opened at run time, and the few things that JavaScript cannot do with addresses.
// Words, checks and decisions are TypeScript's.
#include <cstring>

#include "tables.h"

namespace opt {
namespace {

/** open(kind, path): the functions of a library, or the system's words on why it does not open. It stays open for good. */
Napi::Value open(const Napi::CallbackInfo& info) {
  const std::string kind = info[0].As<Napi::String>(), path = info[1].As<Napi::String>();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Napi::String::New(info.Env(), dlerror());
  Napi::Object table = Napi::Object::New(info.Env());
  if (kind == "driver") bindDriver(info.Env(), table, library);
  else bindCompiler(info.Env(), table, library);
  table.Set("library", Napi::Number::New(info.Env(), static_cast<double>(reinterpret_cast<uintptr_t>(library))));
  return table;
}

void* addressOf(const Napi::Value& number) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(number.As<Napi::Number>().DoubleValue()));
}

/** errorText(library, status): the driver's name and words for a status. */
Napi::Value errorText(const Napi::CallbackInfo& info) {
  using Describe = int (*)(int, const char**);
  const int status = info[1].As<Napi::Number>();
  std::string text;
  for (const char* symbol : {"cuGetErrorName", "cuGetErrorString"}) {
    const auto describe = reinterpret_cast<Describe>(dlsym(addressOf(info[0]), symbol));
    const char* words = nullptr;
    if (describe != nullptr && describe(status, &words) == 0 && words != nullptr) text += (text.empty() ? "" : ": ") + std::string(words);
  }
  return Napi::String::New(info.Env(), text.empty() ? "status " + std::to_string(status) : text);
}

/** launch(function, blocks, threads, stream, arguments, bytes), with all arguments in one piece of memory. */
napi_value launch(napi_env env, napi_callback_info info) {
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  napi_value values[6], result;
  size_t count = 6;
  void* function = nullptr;
  napi_get_cb_info(env, info, &count, values, nullptr, &function);
  Argument<void*> kernel, stream, bytes;
  Argument<unsigned> blocks, threads;
  Argument<size_t> length;
  if (count != 6 || !kernel.read(env, values[0]) || !blocks.read(env, values[1]) || !threads.read(env, values[2]) ||
      !stream.read(env, values[3]) || !bytes.read(env, values[4]) || !length.read(env, values[5])) {
    napi_throw_type_error(env, nullptr, "opt_cuda: launch takes a function, blocks, threads, a stream, arguments and their size");
    return nullptr;
  }
  // CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END
  void* extra[] = {reinterpret_cast<void*>(1), bytes.value, reinterpret_cast<void*>(2), &length.value, nullptr};
  const int status = reinterpret_cast<Launch>(function)(kernel.value, blocks.value, 1, 1, threads.value, 1, 1, 0, stream.value, nullptr, extra);
  napi_create_int32(env, status, &result);
  return result;
}

Napi::Value bindLaunch(const Napi::CallbackInfo& info) {
  void* function = dlsym(addressOf(info[0]), "cuLaunchKernel");
  if (function == nullptr) return info.Env().Undefined();
  napi_value value;
  napi_create_function(info.Env(), "launch", NAPI_AUTO_LENGTH, launch, function, &value);
  return Napi::Value(info.Env(), value);
}

/** A copy on the host, carried out by the driver when its stream comes to it. */
struct HostCopy {
  void* target;
  const void* source;
  size_t bytes;
};

void carryOut(void* data) {
  const auto* copy = static_cast<HostCopy*>(data);
  std::memcpy(copy->target, copy->source, copy->bytes);
  delete copy;
}

/** copyInOrder(stream, target, source): all bytes of the view `target` from an address on, in the stream's order. */
napi_value copyInOrder(napi_env env, napi_callback_info info) {
  using LaunchHostFunction = int (*)(void*, void (*)(void*), void*);
  napi_value values[3], result;
  size_t count = 3, bytes = 0;
  void *function = nullptr, *target = nullptr;
  napi_get_cb_info(env, info, &count, values, nullptr, &function);
  Argument<void*> stream, source;
  if (count != 3 || !stream.read(env, values[0]) || !source.read(env, values[2]) ||
      napi_get_typedarray_info(env, values[1], nullptr, &bytes, &target, nullptr, nullptr) != napi_ok) {
    napi_throw_type_error(env, nullptr, "opt_cuda: copyInOrder takes a stream, bytes and an address");
    return nullptr;
  }
  auto* copy = new HostCopy{target, source.value, bytes};
  const int status = reinterpret_cast<LaunchHostFunction>(function)(stream.value, carryOut, copy);
  if (status != 0) delete copy;
  napi_create_int32(env, status, &result);
  return result;
}

Napi::Value bindCopyInOrder(const Napi::CallbackInfo& info) {
  void* function = dlsym(addressOf(info[0]), "cuLaunchHostFunc");
  if (function == nullptr) return info.Env().Undefined();
  napi_value value;
  napi_create_function(info.Env(), "copyInOrder", NAPI_AUTO_LENGTH, copyInOrder, function, &value);
  return Napi::Value(info.Env(), value);
}

/** Waits for an event on a thread of libuv's, so that the event loop goes on. */
class EventWaiter : public Napi::AsyncWorker {
 public:
  EventWaiter(Napi::Env env, void* library, void* context, void* event)
      : AsyncWorker(env), deferred(Napi::Promise::Deferred::New(env)), library(library), context(context), event(event) {}
  Napi::Promise promise() { return deferred.Promise(); }

 protected:
  void Execute() override {
    using OfHandle = int (*)(void*);
    status = reinterpret_cast<OfHandle>(dlsym(library, "cuCtxSetCurrent"))(context);
    if (status == 0) status = reinterpret_cast<OfHandle>(dlsym(library, "cuEventSynchronize"))(event);
  }
  void OnOK() override { deferred.Resolve(Napi::Number::New(Env(), status)); }

 private:
  Napi::Promise::Deferred deferred;
  void *library, *context, *event;
  int status = 0;
};

/** waitForEvent(library, context, event): a promise of the status. */
Napi::Value waitForEvent(const Napi::CallbackInfo& info) {
  auto* waiter = new EventWaiter(info.Env(), addressOf(info[0]), addressOf(info[1]), addressOf(info[2]));
  const Napi::Promise promise = waiter->promise();
  waiter->Queue();
  return promise;
}

/** store(address, bytes) and load(bytes, address): host memory that lies outside of JavaScript. */
Napi::Value store(const Napi::CallbackInfo& info) {
  const auto bytes = info[1].As<Napi::Uint8Array>();
  std::memcpy(addressOf(info[0]), bytes.Data(), bytes.ByteLength());
  return info.Env().Undefined();
}

Napi::Value load(const Napi::CallbackInfo& info) {
  auto bytes = info[0].As<Napi::Uint8Array>();
  std::memcpy(bytes.Data(), addressOf(info[1]), bytes.ByteLength());
  return info.Env().Undefined();
}

/** textAddress(text): a null-terminated copy for the compiler's options, kept for good: there are few, and always the same. */
Napi::Value address(const Napi::CallbackInfo& info) {
  const auto* kept = new std::string(info[0].As<Napi::String>());
  return Napi::Number::New(info.Env(), static_cast<double>(reinterpret_cast<uintptr_t>(kept->c_str())));
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Owned);
  exports.Set("doorVersion", Napi::Number::New(env, 1));
  exports.Set("open", Napi::Function::New(env, open));
  exports.Set("errorText", Napi::Function::New(env, errorText));
  exports.Set("bindLaunch", Napi::Function::New(env, bindLaunch));
  exports.Set("bindCopyInOrder", Napi::Function::New(env, bindCopyInOrder));
  exports.Set("waitForEvent", Napi::Function::New(env, waitForEvent));
  exports.Set("store", Napi::Function::New(env, store));
  exports.Set("load", Napi::Function::New(env, load));
  exports.Set("textAddress", Napi::Function::New(env, address));
  return exports;
}

}  // namespace
}  // namespace opt

static Napi::Object initializeModule(Napi::Env env, Napi::Object exports) { return opt::initialize(env, exports); }
NODE_API_MODULE(opt_cuda, initializeModule)
