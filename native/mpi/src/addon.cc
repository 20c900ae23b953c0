// The Node-API boundary. It pins memory while messages are under way; words, checks and decisions are TypeScript's.
#include <napi.h>

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "owner.h"

namespace opt {
namespace {

Library library{};
std::unique_ptr<Transport> opened;
/** Lives as long as the process: MPI begins once in it. */
Owner* owner = nullptr;
napi_threadsafe_function woken = nullptr;
Napi::FunctionReference onEnded;
/** The views that messages under way read or write, by the messages' numbers. */
std::unordered_map<uint32_t, napi_ref> pinned;
/** The program ends: nobody is told anything any more. */
bool isOver = false;

/** open(path or null for this process): { abi } of the library, or the system's words on why it does not serve. */
Napi::Value open(const Napi::CallbackInfo& info) {
  const std::string path = info[0].IsNull() ? "" : info[0].As<Napi::String>().Utf8Value();
  std::string problem;
  opened = openLibrary(info[0].IsNull() ? nullptr : path.c_str(), library, problem);
  if (opened == nullptr) return Napi::String::New(info.Env(), problem);
  Napi::Object about = Napi::Object::New(info.Env());
  about.Set("abi", library.abi);
  return about;
}

/** What ended while JavaScript waited for other messages. */
std::vector<Completion> kept;

void tell(Napi::Env env, const Completion& completion) {
  const auto pin = pinned.find(completion.id);
  if (pin != pinned.end()) {
    napi_delete_reference(env, pin->second);
    pinned.erase(pin);
  }
  onEnded.Call({Napi::Number::New(env, completion.id), Napi::Number::New(env, static_cast<int>(completion.outcome)),
                Napi::Number::New(env, static_cast<double>(completion.count)), Napi::String::New(env, completion.text)});
}

void deliver(napi_env rawEnv, napi_value, void*, void*) {
  if (rawEnv == nullptr || isOver) return;
  owner->setComputing(false);
  const Napi::Env env(rawEnv);
  const Napi::HandleScope scope(env);
  for (const Completion& completion : std::exchange(kept, {})) tell(env, completion);
  for (const Completion& completion : owner->take()) tell(env, completion);
}

/**
 * wait(ids, milliseconds): onEnded is called for each of these messages before it returns: all, or up to the first that failed. Who does
 * not wait at all computes, until the event loop turns.
 */
Napi::Value wait(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto list = info[0].As<Napi::Uint32Array>();
  std::unordered_set<uint32_t> ids(list.Data(), list.Data() + list.ElementLength());
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(info[1].As<Napi::Number>().DoubleValue()));
  owner->setComputing(info[1].As<Napi::Number>().DoubleValue() == 0);
  std::vector<Completion> done = std::exchange(kept, {});
  bool hasFailed = false;
  for (;;) {
    for (Completion& completion : done) {
      // 0: the library has failed, and with it all that is under way.
      if (ids.erase(completion.id) > 0 || completion.id == 0) {
        tell(env, completion);
        hasFailed = hasFailed || completion.outcome != Outcome::moved;
      } else kept.push_back(std::move(completion));
    }
    if (ids.empty() || hasFailed || std::chrono::steady_clock::now() >= until) break;
    done = owner->take(until);
  }
  if (!kept.empty()) napi_call_threadsafe_function(woken, nullptr, napi_tsfn_nonblocking);
  return env.Undefined();
}

/** start(piece, onEnded): MPI_Init on a thread of its own; onEnded(0, outcome, 0, text) when that has ended, then for each message. */
Napi::Value start(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (owner != nullptr || opened == nullptr) throw Napi::Error::New(env, "opt_mpi: MPI begins once in a process");
  onEnded = Napi::Persistent(info[1].As<Napi::Function>());
  onEnded.SuppressDestruct();
  napi_create_threadsafe_function(env, nullptr, nullptr, Napi::String::New(env, "opt-mpi"), 0, 1, nullptr, nullptr, nullptr, deliver,
                                  &woken);
  owner = new Owner(std::move(opened), static_cast<size_t>(info[0].As<Napi::Number>().DoubleValue()),
                    [] { napi_call_threadsafe_function(woken, nullptr, napi_tsfn_nonblocking); });
  return env.Undefined();
}

/** place(): { rank, size, version }, once MPI_Init has ended. */
Napi::Value place(const Napi::CallbackInfo& info) {
  Napi::Object about = Napi::Object::New(info.Env());
  about.Set("rank", owner->transport().rank);
  about.Set("size", owner->transport().size);
  about.Set("version", owner->transport().version);
  return about;
}

/** post(id, kind, peer or element, tag or reduction, bytes): where the bytes lie is asked now, and nowhere later. */
napi_value post(napi_env env, napi_callback_info info) {
  napi_value values[5];
  size_t count = 5, length = 0;
  int32_t kind = 0;
  Message message{};
  void* data = nullptr;
  napi_typedarray_type type;
  napi_ref pin;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  if (count != 5 || napi_get_value_uint32(env, values[0], &message.id) != napi_ok ||
      napi_get_value_int32(env, values[1], &kind) != napi_ok || napi_get_value_int32(env, values[2], &message.peer) != napi_ok ||
      napi_get_value_int32(env, values[3], &message.tag) != napi_ok ||
      napi_get_typedarray_info(env, values[4], &type, &length, &data, nullptr, nullptr) != napi_ok || type != napi_uint8_array ||
      napi_create_reference(env, values[4], 1, &pin) != napi_ok) {
    napi_throw_type_error(env, nullptr, "opt_mpi: post takes a number, a kind, a rank, a tag and bytes");
    return nullptr;
  }
  pinned[message.id] = pin;
  message.kind = static_cast<Kind>(kind);
  message.element = static_cast<Element>(message.peer);
  message.reduction = static_cast<Reduction>(message.tag);
  message.bytes = static_cast<uint8_t*>(data);
  message.length = length;
  owner->post(message);
  return nullptr;
}

/** close(id): onEnded(id, ...) when what was sent has left. */
Napi::Value close(const Napi::CallbackInfo& info) {
  owner->close(info[0].As<Napi::Number>().Uint32Value());
  return info.Env().Undefined();
}

/** abort(code): MPI_Abort. */
Napi::Value abort(const Napi::CallbackInfo& info) {
  owner->abort(info[0].As<Napi::Number>().Int32Value());
  return info.Env().Undefined();
}

/** join(seconds), as the last call: whether the thread has ended within that time. */
Napi::Value join(const Napi::CallbackInfo& info) {
  isOver = true;
  return Napi::Boolean::New(info.Env(), owner->join(info[0].As<Napi::Number>().DoubleValue()));
}

/** hold(is): whether what is under way keeps the event loop alive. */
Napi::Value hold(const Napi::CallbackInfo& info) {
  if (info[0].As<Napi::Boolean>()) napi_ref_threadsafe_function(info.Env(), woken);
  else napi_unref_threadsafe_function(info.Env(), woken);
  return info.Env().Undefined();
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  const std::pair<const char*, Napi::Value (*)(const Napi::CallbackInfo&)> functions[] = {
      {"open", open}, {"start", start}, {"place", place}, {"close", close}, {"abort", abort}, {"join", join}, {"hold", hold}, {"wait", wait},
  };
  for (const auto& [name, function] : functions) exports.Set(name, Napi::Function::New(env, function, name));
  napi_value value;
  napi_create_function(env, "post", NAPI_AUTO_LENGTH, post, nullptr, &value);
  exports.Set("post", Napi::Value(env, value));
  exports.Set("doorVersion", Napi::Number::New(env, 1));
  return exports;
}

}  // namespace
}  // namespace opt

Napi::Object initOptMpi(Napi::Env env, Napi::Object exports) { return opt::init(env, exports); }
NODE_API_MODULE(opt_mpi, initOptMpi)
