#pragma once

#include <csignal>

namespace opt {

/** Libraries, some as soon as they are loaded, put handlers on signals that are the engine's: traps of WebAssembly are SIGSEGV. */
class KeepSignals {
 public:
  KeepSignals() {
    for (int signal = 1; signal < COUNT; signal++) known[signal] = sigaction(signal, nullptr, &before[signal]) == 0;
  }
  ~KeepSignals() {
    for (int signal = 1; signal < COUNT; signal++)
      if (known[signal]) sigaction(signal, &before[signal], nullptr);
  }

 private:
  static constexpr int COUNT = 32;
  struct sigaction before[COUNT];
  bool known[COUNT] = {};
};

}  // namespace opt
