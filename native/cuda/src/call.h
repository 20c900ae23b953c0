// C functions of libraries opened at run time, as functions of JavaScript. Addresses and handles are numbers, results are written into
// typed arrays that the caller passes, and what returns is the library's status.
#pragma once
#include <dlfcn.h>
#include <napi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "owned.h"

namespace opt {

/** An integer: a JavaScript number. */
template <typename T>
struct Argument {
  static_assert(std::is_integral_v<T>);
  T value{};
  bool read(napi_env env, napi_value from) {
    int64_t number = 0;
    if (napi_get_value_int64(env, from, &number) != napi_ok) return false;
    value = static_cast<T>(number);
    return true;
  }
};

/** A pointer: an address, null, or the bytes of a view. */
template <typename T>
struct Argument<T*> {
  T* value = nullptr;
  bool read(napi_env env, napi_value from) {
    napi_valuetype type;
    napi_typeof(env, from, &type);
    if (type == napi_null) return true;
    if (type == napi_number) {
      double number = 0;
      napi_get_value_double(env, from, &number);
      value = reinterpret_cast<T*>(static_cast<uintptr_t>(number));
      return number >= 0;
    }
    void* data = nullptr;
    if (napi_get_typedarray_info(env, from, nullptr, nullptr, &data, nullptr, nullptr) != napi_ok) return false;
    value = static_cast<T*>(data);
    return true;
  }
};

template <>
struct Argument<const char*> {
  std::string text;
  const char* value = nullptr;
  bool read(napi_env env, napi_value from) {
    size_t length = 0;
    if (napi_get_value_string_utf8(env, from, nullptr, 0, &length) != napi_ok) return false;
    text.resize(length);
    napi_get_value_string_utf8(env, from, text.data(), length + 1, &length);
    value = text.c_str();
    return true;
  }
};

/** What a function of a library is bound to. */
struct Bound {
  void* function;
  void* library;
};

/** Reads the arguments of a call of JavaScript and calls the function; false with an exception where they are not what it takes. */
template <typename... Types>
bool invoke(napi_env env, napi_callback_info info, Bound*& bound, std::tuple<Argument<Types>...>& arguments, int& status) {
  napi_value values[sizeof...(Types)];
  size_t count = sizeof...(Types);
  napi_get_cb_info(env, info, &count, values, nullptr, reinterpret_cast<void**>(&bound));
  const bool readable = count == sizeof...(Types) && [&]<size_t... I>(std::index_sequence<I...>) {
    return (std::get<I>(arguments).read(env, values[I]) && ...);
  }(std::index_sequence_for<Types...>{});
  if (!readable) {
    napi_throw_type_error(env, nullptr, "opt_cuda: an argument is missing or of the wrong type");
    return false;
  }
  status = std::apply([&](auto&... argument) { return reinterpret_cast<int (*)(Types...)>(bound->function)(argument.value...); },
                      arguments);
  return true;
}

inline napi_value statusValue(napi_env env, int status) {
  napi_value result;
  napi_create_int32(env, status, &result);
  return result;
}

/** The JavaScript side of a function of this type; what it is bound to is the callback's data. */
template <typename... Types>
napi_value call(napi_env env, napi_callback_info info) {
  std::tuple<Argument<Types>...> arguments;
  Bound* bound = nullptr;
  int status = 0;
  return invoke<Types...>(env, info, bound, arguments, status) ? statusValue(env, status) : nullptr;
}

/** Of a function that writes a handle to its first argument, which is owned from then on; a context is known by its device. */
template <Kind kind, typename... Types>
napi_value callTaking(napi_env env, napi_callback_info info) {
  std::tuple<Argument<Types>...> arguments;
  Bound* bound = nullptr;
  int status = 0;
  if (!invoke<Types...>(env, info, bound, arguments, status)) return nullptr;
  Owned& owned = *Napi::Env(env).GetInstanceData<Owned>();
  if constexpr (kind == Kind::context) {
    if (status == 0) owned.take(bound->library, kind, static_cast<uint64_t>(std::get<1>(arguments).value));
  } else {
    if (status == 0) owned.take(bound->library, kind, (uint64_t)*std::get<0>(arguments).value);
  }
  return statusValue(env, status);
}

/** Of a function that takes a handle back. */
template <Kind kind, typename Type>
napi_value callReleasing(napi_env env, napi_callback_info info) {
  std::tuple<Argument<Type>> arguments;
  Bound* bound = nullptr;
  int status = 0;
  if (!invoke<Type>(env, info, bound, arguments, status)) return nullptr;
  Napi::Env(env).GetInstanceData<Owned>()->giveBack(kind, (uint64_t)std::get<0>(arguments).value);
  return statusValue(env, status);
}

/** Adds a library's function to an object under its own name; one that the library lacks is left out. */
inline void bindTo(Napi::Env env, Napi::Object& table, void* library, const char* name, napi_callback callback) {
  void* function = dlsym(library, name);
  if (function == nullptr) return;
  napi_value value;
  // Kept for good, as the library is.
  napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, new Bound{function, library}, &value);
  table.Set(name, value);
}

template <typename... Types>
void bind(Napi::Env env, Napi::Object& table, void* library, const char* name) {
  bindTo(env, table, library, name, call<Types...>);
}

template <Kind kind, typename... Types>
void bindTaking(Napi::Env env, Napi::Object& table, void* library, const char* name) {
  bindTo(env, table, library, name, callTaking<kind, Types...>);
}

template <Kind kind, typename Type>
void bindReleasing(Napi::Env env, Napi::Object& table, void* library, const char* name) {
  bindTo(env, table, library, name, callReleasing<kind, Type>);
}

}  // namespace opt
