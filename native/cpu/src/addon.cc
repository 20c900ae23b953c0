// The Node-API boundary. It knows addresses and numbers; lengths, dtypes and words are checked and written in TypeScript.
#include <napi.h>

#if !defined(_WIN32)
#include <sys/mman.h>
#endif
#if defined(__linux__)
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "crc32.h"
#include "files.h"
#include "kernels.h"
#include "pool.h"

namespace {

const char* const RULE_HASHES[] = {
#include "rule-hashes.inc"
};

const char* const ROW_HASHES[] = {
#include "row-hashes.inc"
};

/** Whether OPT_CPU_HIDE, a list like "avx512,avx2", names it: tests then see an older processor. */
bool isHidden(const char* name) {
  const char* hidden = std::getenv("OPT_CPU_HIDE");
  return hidden != nullptr && ("," + std::string(hidden) + ",").find("," + std::string(name) + ",") != std::string::npos;
}

struct InstructionSet {
  const char* name;
  opt::Run run;
  bool available;
};

// Those that it was built with (OPT_HAS_...), best last.
const InstructionSet INSTRUCTION_SETS[] = {
#ifdef OPT_HAS_neon
    {"neon", opt::neon::run, !isHidden("neon")},
#endif
#ifdef OPT_HAS_sse2
    {"sse2", opt::sse2::run, !isHidden("sse2")},
#endif
#ifdef OPT_HAS_avx2
    {"avx2", opt::avx2::run,
     !isHidden("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")},
#endif
#ifdef OPT_HAS_avx512
    {"avx512", opt::avx512::run,
     !isHidden("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")},
#endif
};
constexpr uint32_t INSTRUCTION_SET_COUNT = sizeof INSTRUCTION_SETS / sizeof INSTRUCTION_SETS[0];

/** instructionSets(): every set's name, or null in the place of one that this processor lacks or OPT_CPU_HIDE hides. */
Napi::Value instructionSets(const Napi::CallbackInfo& info) {
  Napi::Array names = Napi::Array::New(info.Env(), INSTRUCTION_SET_COUNT);
  for (uint32_t i = 0; i < INSTRUCTION_SET_COUNT; i++) {
    const InstructionSet& set = INSTRUCTION_SETS[i];
    names.Set(i, set.available ? Napi::Value(Napi::String::New(info.Env(), set.name)) : Napi::Value(info.Env().Null()));
  }
  return names;
}

/** commandFormat(): identity of the commands that it reads. */
Napi::Value commandFormat(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), opt::COMMAND_FORMAT);
}

template <size_t COUNT>
Napi::Value listOf(const char* const (&hashes)[COUNT], const Napi::Env& env) {
  Napi::Array list = Napi::Array::New(env);
  for (const char* hash : hashes) list.Set(list.Length(), Napi::String::New(env, hash));
  return list;
}

/** ruleHashes(): the rules compiled ahead, in the order of their numbers. */
Napi::Value ruleHashes(const Napi::CallbackInfo& info) { return listOf(RULE_HASHES, info.Env()); }

/** rowHashes(): the row programs. */
Napi::Value rowHashes(const Napi::CallbackInfo& info) { return listOf(ROW_HASHES, info.Env()); }

/** address(view): where its bytes lie. They stay there until its buffer is detached or collected. */
Napi::Value address(const Napi::CallbackInfo& info) {
  void* data = nullptr;
  napi_value value = info[0];
  napi_typedarray_type type;
  size_t length, offset;
  napi_value buffer;
  if (napi_get_typedarray_info(info.Env(), value, &type, &length, &data, &buffer, &offset) != napi_ok) return info.Env().Null();
  return Napi::Number::New(info.Env(), static_cast<double>(reinterpret_cast<uintptr_t>(data)));
}

#if defined(__linux__)
/** The whole pages between two addresses. */
void advise(uintptr_t start, uintptr_t end, int advice) {
  constexpr uintptr_t PAGE = 4096;
  const uintptr_t first = (start + PAGE - 1) / PAGE * PAGE, last = end / PAGE * PAGE;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, advice);
}

uintptr_t addressIn(const Napi::Value& value) { return static_cast<uintptr_t>(value.As<Napi::Number>().DoubleValue()); }

/**
 * adviseHugePages(address, bytes): large memory that is walked in order gains from fewer, larger pages. It was touched, and has small
 * ones already: Linux 6.1 moves it at once, older ones in their own time.
 */
Napi::Value adviseHugePages(const Napi::CallbackInfo& info) {
  constexpr int COLLAPSE = 25;  // MADV_COLLAPSE, which older headers lack
  const uintptr_t start = addressIn(info[0]), end = start + addressIn(info[1]);
  advise(start, end, MADV_HUGEPAGE);
  advise(start, end, COLLAPSE);
  return info.Env().Undefined();
}

/**
 * useHugePages(address, bytes, used, usedBytes): of new memory a part is used, by huge pages. The rest is given back: memory that was
 * another's before comes zeroed, with pages.
 */
Napi::Value useHugePages(const Napi::CallbackInfo& info) {
  const uintptr_t start = addressIn(info[0]), end = start + addressIn(info[1]);
  const uintptr_t used = addressIn(info[2]), usedEnd = used + addressIn(info[3]);
  advise(start, used, MADV_DONTNEED);
  advise(used, usedEnd, MADV_HUGEPAGE);
  advise(usedEnd, end, MADV_DONTNEED);
  return info.Env().Undefined();
}

/** releasePages(address, bytes): what lies there is not needed any more. */
Napi::Value releasePages(const Napi::CallbackInfo& info) {
  const uintptr_t start = addressIn(info[0]);
  advise(start, start + addressIn(info[1]), MADV_DONTNEED);
  return info.Env().Undefined();
}
#endif

#if !defined(_WIN32)
/** mapFile(file, offset, bytes): bytes of an open file as an ArrayBuffer, which all who map them share; null where the system rejects. */
Napi::Value mapFile(const Napi::CallbackInfo& info) {
  const auto length = static_cast<size_t>(info[2].As<Napi::Number>().DoubleValue());
  void* address = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, info[0].As<Napi::Number>().Int32Value(),
                       static_cast<off_t>(info[1].As<Napi::Number>().DoubleValue()));
  if (address == MAP_FAILED) return info.Env().Null();
  return Napi::ArrayBuffer::New(info.Env(), address, length, [length](Napi::Env, void* mapped) { munmap(mapped, length); });
}
#endif

/** release(view): frees its buffer's memory now instead of at the next garbage collection. The C library may keep it, but no pages. */
Napi::Value release(const Napi::CallbackInfo& info) {
  napi_value view = info[0], buffer;
  napi_typedarray_type type;
  size_t length, offset;
  void* data;
  if (napi_get_typedarray_info(info.Env(), view, &type, &length, &data, &buffer, &offset) == napi_ok) {
#if defined(__linux__)
    napi_get_arraybuffer_info(info.Env(), buffer, &data, &length);
    const auto start = reinterpret_cast<uintptr_t>(data);
    advise(start, start + length, MADV_DONTNEED);
#endif
    napi_detach_arraybuffer(info.Env(), buffer);
  }
  return info.Env().Undefined();
}

/** The fastest that this processor has, or null. */
opt::Crc32 bestCrc32() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("pclmul")) return nullptr;
  return !isHidden("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") ? opt::crc32Wide : opt::crc32;
#elif defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0 ? opt::crc32 : nullptr;
#else
  return opt::crc32;  // every Apple processor has it
#endif
}
const opt::Crc32 CRC32 = bestCrc32();

/** crc32(view, before): zlib's, of bytes that follow others. Plain Node-API: there are many short ones. */
napi_value crc32(napi_env env, napi_callback_info info) {
  napi_value args[2], result, buffer;
  size_t count = 2, length = 0, offset;
  napi_typedarray_type type;
  void* data = nullptr;
  uint32_t before = 0;
  if (napi_get_cb_info(env, info, &count, args, nullptr, nullptr) != napi_ok || count != 2 ||
      napi_get_typedarray_info(env, args[0], &type, &length, &data, &buffer, &offset) != napi_ok ||
      napi_get_value_uint32(env, args[1], &before) != napi_ok) {
    return nullptr;
  }
  napi_create_uint32(env, CRC32(before, static_cast<const uint8_t*>(data), length), &result);
  return result;
}

struct Copy {
  uint8_t* target;
  const uint8_t* source;
  size_t length;
};

/** Worth a thread, and so many that a thread that is late leaves little to wait for. */
constexpr size_t COPIED_AT_ONCE = 1 << 18;

void copyPart(void* context, int64_t part, int) {
  const Copy& copy = *static_cast<const Copy*>(context);
  const size_t begin = static_cast<size_t>(part) * COPIED_AT_ONCE;
  std::memcpy(copy.target + begin, copy.source + begin, std::min(COPIED_AT_ONCE, copy.length - begin));
}

/** copyBytes(target, source, threads): views of one length that share no byte. New memory gets its pages from several threads, too. */
Napi::Value copyBytes(const Napi::CallbackInfo& info) {
  void* data[2] = {};
  size_t length[2] = {}, offset;
  napi_typedarray_type type;
  napi_value buffer;
  for (int i = 0; i < 2; i++) {
    napi_value view = info[i];
    if (napi_get_typedarray_info(info.Env(), view, &type, &length[i], &data[i], &buffer, &offset) != napi_ok) return info.Env().Undefined();
  }
  Copy copy{static_cast<uint8_t*>(data[0]), static_cast<const uint8_t*>(data[1]), std::min(length[0], length[1])};
  const auto parts = static_cast<int64_t>((copy.length + COPIED_AT_ONCE - 1) / COPIED_AT_ONCE);
  opt::runParts(parts, info[2].As<Napi::Number>().Int32Value(), copyPart, &copy);
  return info.Env().Undefined();
}

/** run(instructionSet, address of the command): a status. Plain Node-API: this call is paid at every launch. */
napi_value run(napi_env env, napi_callback_info info) {
  napi_value args[2], result;
  size_t count = 2;
  double set = -1, command = 0;
  auto status = opt::Status::BAD_COMMAND;
  if (napi_get_cb_info(env, info, &count, args, nullptr, nullptr) == napi_ok && count == 2 &&
      napi_get_value_double(env, args[0], &set) == napi_ok && napi_get_value_double(env, args[1], &command) == napi_ok &&
      set >= 0 && set < INSTRUCTION_SET_COUNT && INSTRUCTION_SETS[static_cast<int>(set)].available && command != 0) {
    try {
      status = INSTRUCTION_SETS[static_cast<int>(set)].run(reinterpret_cast<const double*>(static_cast<uintptr_t>(command)));
    } catch (const std::bad_alloc&) {
      status = opt::Status::OUT_OF_MEMORY;
    }
  }
  napi_create_int32(env, static_cast<int32_t>(status), &result);
  return result;
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  exports.Set("instructionSets", Napi::Function::New(env, instructionSets));
  exports.Set("commandFormat", Napi::Function::New(env, commandFormat));
  exports.Set("ruleHashes", Napi::Function::New(env, ruleHashes));
  exports.Set("rowHashes", Napi::Function::New(env, rowHashes));
  exports.Set("address", Napi::Function::New(env, address));
#if defined(__linux__)
  exports.Set("adviseHugePages", Napi::Function::New(env, adviseHugePages));
  exports.Set("useHugePages", Napi::Function::New(env, useHugePages));
  exports.Set("releasePages", Napi::Function::New(env, releasePages));
#endif
#if !defined(_WIN32)
  exports.Set("mapFile", Napi::Function::New(env, mapFile));
#endif
  exports.Set("copyBytes", Napi::Function::New(env, copyBytes));
  exports.Set("release", Napi::Function::New(env, release));
  napi_value function;
  napi_create_function(env, "run", NAPI_AUTO_LENGTH, run, nullptr, &function);
  exports.Set("run", function);
  if (CRC32 != nullptr) {
    napi_create_function(env, "crc32", NAPI_AUTO_LENGTH, crc32, nullptr, &function);
    exports.Set("crc32", function);
  }
  opt::exportFiles(env, exports, CRC32);
  return exports;
}

}  // namespace

NODE_API_MODULE(opt_cpu, initialize)
