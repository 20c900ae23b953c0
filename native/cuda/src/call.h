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

/** The JavaScript side of a function of this type; the function itself is the callback's data. */
template <typename... Types>
napi_value call(napi_env env, napi_callback_info info) {
  napi_value values[sizeof...(Types)];
  size_t count = sizeof...(Types);
  void* function = nullptr;
  napi_get_cb_info(env, info, &count, values, nullptr, &function);
  std::tuple<Argument<Types>...> arguments;
  const bool readable = count == sizeof...(Types) && [&]<size_t... I>(std::index_sequence<I...>) {
    return (std::get<I>(arguments).read(env, values[I]) && ...);
  }(std::index_sequence_for<Types...>{});
  if (!readable) {
    napi_throw_type_error(env, nullptr, "opt_cuda: an argument is missing or of the wrong type");
    return nullptr;
  }
  const int status = std::apply(
      [&](auto&... argument) { return reinterpret_cast<int (*)(Types...)>(function)(argument.value...); }, arguments);
  napi_value result;
  napi_create_int32(env, status, &result);
  return result;
}

/** Adds a library's function to an object under its own name; one that the library lacks is left out. */
template <typename... Types>
void bind(Napi::Env env, Napi::Object& table, void* library, const char* name) {
  void* function = dlsym(library, name);
  if (function == nullptr) return;
  napi_value value;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, call<Types...>, function, &value);
  table.Set(name, value);
}

}  // namespace opt
