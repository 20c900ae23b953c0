// What a thread of JavaScript took from the driver and has not given back. A worker may be terminated at any moment, and then no line of
// JavaScript runs any more: its streams are waited for, because copies in their order write into its memory, and all of it goes back.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <utility>

namespace opt {

/** In the order in which they go back. */
enum class Kind { graph, event, pinned, memory, module, stream, context };

class Owned {
 public:
  void take(void* library, Kind kind, uint64_t handle) {
    uint64_t context = 0;
    call(library, "cuCtxGetCurrent", &context);
    Thing& thing = things[{kind, handle}];
    thing = {library, context, thing.count + 1};
  }

  void giveBack(Kind kind, uint64_t handle) {
    const auto found = things.find({kind, handle});
    if (found != things.end() && --found->second.count == 0) things.erase(found);
  }

  /** A lost context answers no call: the driver frees what is its own. */
  ~Owned() {
    for (const auto& [key, thing] : things)
      if (key.first == Kind::stream) {
        call(thing.library, "cuCtxSetCurrent", thing.context);
        call(thing.library, "cuStreamSynchronize", key.second);
      }
    for (const auto& [key, thing] : things)
      for (unsigned i = 0; i < thing.count; i++) {
        call(thing.library, "cuCtxSetCurrent", thing.context);
        if (key.first == Kind::context) call(thing.library, releaseOf(key.first), static_cast<int>(key.second));
        else call(thing.library, releaseOf(key.first), key.second);
      }
  }

 private:
  struct Thing {
    void* library = nullptr;
    uint64_t context = 0;
    /** A context is retained by every device that is opened on it. */
    unsigned count = 0;
  };
  std::map<std::pair<Kind, uint64_t>, Thing> things;

  static const char* releaseOf(Kind kind) {
    switch (kind) {
      case Kind::graph: return "cuGraphExecDestroy";
      case Kind::event: return "cuEventDestroy_v2";
      case Kind::pinned: return "cuMemFreeHost";
      case Kind::memory: return "cuMemFree_v2";
      case Kind::module: return "cuModuleUnload";
      case Kind::stream: return "cuStreamDestroy_v2";
      default: return "cuDevicePrimaryCtxRelease_v2";
    }
  }

  template <typename Argument>
  static void call(void* library, const char* name, Argument argument) {
    if (void* function = dlsym(library, name)) reinterpret_cast<int (*)(Argument)>(function)(argument);
  }
};

}  // namespace opt
