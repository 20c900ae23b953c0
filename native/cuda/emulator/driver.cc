// A driver library without a GPU: it runs our kernels on the CPU, so that tests cover the addon, the host code and the kernels together.
// Streams are lazy: nothing runs before somebody waits, so that reading too early or reusing a buffer too soon shows.
// With OPT_EMULATED_EAGER every second stream that is made runs at once: what should have waited for a lazy one shows.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda.h"
#include "fibers.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

enum Status { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, UNSUPPORTED_IN_CAPTURE = 900 };

using Work = std::function<void()>;

struct Stream {
  std::list<Work> queue;
  bool eager = false;
  /** Of a stream that is being recorded. */
  std::vector<Work>* capture = nullptr;
};

/** What is waited for: the event as it was recorded last, whatever it is recorded for afterwards. */
struct Mark {
  Stream* stream = nullptr;
  std::shared_ptr<bool> passed = std::make_shared<bool>(true);
};

struct Event {
  Mark mark;
};

std::recursive_mutex mutex;
std::list<Stream*> streams;
std::map<uint64_t, size_t> blocks;
size_t used = 0;

/** Streams, events, contexts and pinned memory take a little of the GPU's, as they do of a real one: what is not given back shows. */
constexpr size_t EACH = 512;
thread_local void* current = nullptr;

void count(bool taken) {
  if (taken) used += EACH;
  else used -= EACH;
}

size_t capacity() {
  const char* given = std::getenv("OPT_EMULATED_BYTES");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : size_t{1} << 31;
}

std::map<std::string, PackedKernel>& kernels() {
  static std::map<std::string, PackedKernel> all;
  return all;
}

void drain(Stream& stream) {
  while (!stream.queue.empty()) {
    Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    work();
  }
}

void reach(const Mark& mark) {
  while (!*mark.passed && !mark.stream->queue.empty()) {
    Work work = std::move(mark.stream->queue.front());
    mark.stream->queue.pop_front();
    work();
  }
}

void drainAll() {
  for (Stream* stream : streams) drain(*stream);
}

int enqueue(void* handle, Work work) {
  auto* stream = static_cast<Stream*>(handle);
  if (stream->capture != nullptr) stream->capture->push_back(std::move(work));
  else stream->queue.push_back(std::move(work));
  if (stream->eager) drain(*stream);
  return SUCCESS;
}

}  // namespace

using Lock = std::lock_guard<std::recursive_mutex>;

void badLaunch(const char* problem) {
  std::fprintf(stderr, "emulated CUDA: %s\n", problem);
  std::abort();
}

Registration::Registration(const char* name, PackedKernel kernel) { kernels()[name] = kernel; }

EXPORT cuInit(unsigned) { return SUCCESS; }
EXPORT cuDriverGetVersion(int* version) { return *version = 13000, SUCCESS; }
EXPORT cuDeviceGetCount(int* count) { return *count = 2, SUCCESS; }
EXPORT cuDeviceGet(int* device, int ordinal) { return *device = ordinal, SUCCESS; }
EXPORT cuDeviceGetName(char* name, int length, int) { return std::snprintf(name, static_cast<size_t>(length), "emulated GPU"), SUCCESS; }
EXPORT cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 2 : attribute == 75 ? 9 : 0;
  return SUCCESS;
}
EXPORT cuDevicePrimaryCtxRetain(void** context, int device) {
  const Lock lock(mutex);
  count(true);
  return *context = reinterpret_cast<void*>(intptr_t{device} + 1), SUCCESS;
}
EXPORT cuDevicePrimaryCtxRelease_v2(int) {
  const Lock lock(mutex);
  return count(false), SUCCESS;
}
EXPORT cuCtxSetCurrent(void* context) { return current = context, SUCCESS; }
EXPORT cuCtxGetCurrent(void** context) { return *context = current, SUCCESS; }

EXPORT cuGetErrorName(int status, const char** name) {
  *name = status == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : status == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR";
  return SUCCESS;
}
EXPORT cuGetErrorString(int, const char** text) { return *text = "as the emulated driver says", SUCCESS; }

EXPORT cuStreamCreate(void** stream, unsigned) {
  const Lock lock(mutex);
  static unsigned made = 0;
  count(true);
  streams.push_back(new Stream);
  streams.back()->eager = made++ % 2 == 1 && std::getenv("OPT_EMULATED_EAGER") != nullptr;
  return *stream = streams.back(), SUCCESS;
}
EXPORT cuStreamSynchronize(void* stream) {
  const Lock lock(mutex);
  return drain(*static_cast<Stream*>(stream)), SUCCESS;
}
EXPORT cuStreamDestroy_v2(void* handle) {
  const Lock lock(mutex);
  auto* stream = static_cast<Stream*>(handle);
  drain(*stream);
  count(false);
  streams.remove(stream);
  delete stream;
  return SUCCESS;
}

EXPORT cuEventCreate(void** event, unsigned) {
  const Lock lock(mutex);
  count(true);
  return *event = new Event, SUCCESS;
}
EXPORT cuEventDestroy_v2(void* event) {
  const Lock lock(mutex);
  drainAll();
  count(false);
  delete static_cast<Event*>(event);
  return SUCCESS;
}
EXPORT cuEventRecord(void* handle, void* stream) {
  const Lock lock(mutex);
  if (static_cast<Stream*>(stream)->capture != nullptr) return UNSUPPORTED_IN_CAPTURE;
  const Mark mark{static_cast<Stream*>(stream), std::make_shared<bool>(false)};
  static_cast<Event*>(handle)->mark = mark;
  return enqueue(stream, [mark] { *mark.passed = true; });
}
EXPORT cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const Lock lock(mutex);
  if (static_cast<Stream*>(stream)->capture != nullptr) return UNSUPPORTED_IN_CAPTURE;
  return enqueue(stream, [mark = static_cast<Event*>(event)->mark] { reach(mark); });
}
EXPORT cuLaunchHostFunc(void* stream, void (*body)(void*), void* data) {
  const Lock lock(mutex);
  return enqueue(stream, [=] { body(data); });
}
EXPORT cuEventQuery(void* event) {
  const Lock lock(mutex);
  return *static_cast<Event*>(event)->mark.passed ? SUCCESS : NOT_READY;
}
EXPORT cuEventSynchronize(void* handle) {
  const Lock lock(mutex);
  return reach(static_cast<Event*>(handle)->mark), SUCCESS;
}

EXPORT cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  const Lock lock(mutex);
  if (bytes == 0) return INVALID_VALUE;
  if (used + bytes > capacity()) return OUT_OF_MEMORY;
  void* block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(block, 0xA5, bytes);
  *address = reinterpret_cast<uint64_t>(block);
  blocks[*address] = bytes;
  used += bytes;
  return SUCCESS;
}
EXPORT cuMemFree_v2(uint64_t address) {
  const Lock lock(mutex);
  const auto block = blocks.find(address);
  if (block == blocks.end()) return INVALID_VALUE;
  drainAll();
  used -= block->second;
  blocks.erase(block);
  std::free(reinterpret_cast<void*>(address));
  return SUCCESS;
}
EXPORT cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Lock lock(mutex);
  *total = capacity();
  *free = *total - used;
  return SUCCESS;
}
EXPORT cuMemAllocHost_v2(void** address, size_t bytes) {
  const Lock lock(mutex);
  count(true);
  return *address = std::aligned_alloc(512, (bytes + 511) / 512 * 512), SUCCESS;
}
EXPORT cuMemFreeHost(void* address) {
  const Lock lock(mutex);
  drainAll();
  count(false);
  std::free(address);
  return SUCCESS;
}

static int copy(void* target, const void* source, size_t bytes, void* stream) {
  const Lock lock(mutex);
  return enqueue(stream, [=] { std::memmove(target, source, bytes); });
}
EXPORT cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream) {
  return copy(reinterpret_cast<void*>(target), source, bytes, stream);
}
EXPORT cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream) {
  return copy(target, reinterpret_cast<const void*>(source), bytes, stream);
}
EXPORT cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream) {
  return copy(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), bytes, stream);
}

/** An image is the path of a library with kernels, which make themselves known when it loads; or empty: ours. */
EXPORT cuModuleLoadData(void** module, const void* image) {
  const auto* path = static_cast<const char*>(image);
  if (path[0] == '/' && dlopen(path, RTLD_NOW) == nullptr) badLaunch(dlerror());
  return *module = &kernels(), SUCCESS;
}
EXPORT cuModuleUnload(void*) { return SUCCESS; }
EXPORT cuModuleGetFunction(void** entry, void*, const char* name) {
  const auto kernel = kernels().find(name);
  if (kernel == kernels().end()) return NOT_FOUND;
  *entry = reinterpret_cast<void*>(kernel->second);
  return SUCCESS;
}
EXPORT cuLaunchKernel(void* entry, unsigned grid, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void* stream, void**, void** extra) {
  const Lock lock(mutex);
  if (grid == 0 || threads == 0) return INVALID_VALUE;
  const auto* bytes = static_cast<const unsigned char*>(extra[1]);
  const std::vector<unsigned char> arguments(bytes, bytes + *static_cast<size_t*>(extra[3]));
  const auto kernel = reinterpret_cast<PackedKernel>(entry);
  return enqueue(stream, [=] {
    gridDim.x = grid;
    for (unsigned block = 0; block < grid; block++) {
      blockIdx.x = block;
      runBlock(threads, [&] { kernel(arguments.data(), arguments.size()); });
    }
  });
}

EXPORT cuStreamBeginCapture_v2(void* handle, int) {
  const Lock lock(mutex);
  static_cast<Stream*>(handle)->capture = new std::vector<Work>;
  return SUCCESS;
}
EXPORT cuStreamEndCapture(void* handle, void** graph) {
  const Lock lock(mutex);
  auto* stream = static_cast<Stream*>(handle);
  *graph = stream->capture;
  stream->capture = nullptr;
  return SUCCESS;
}
EXPORT cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return *executable = new std::vector<Work>(*static_cast<std::vector<Work>*>(graph)), SUCCESS;
}
EXPORT cuGraphLaunch(void* executable, void* stream) {
  const Lock lock(mutex);
  for (const Work& work : *static_cast<std::vector<Work>*>(executable)) enqueue(stream, work);
  return SUCCESS;
}
EXPORT cuGraphExecDestroy(void* executable) { return delete static_cast<std::vector<Work>*>(executable), SUCCESS; }
EXPORT cuGraphDestroy(void* graph) { return delete static_cast<std::vector<Work>*>(graph), SUCCESS; }
