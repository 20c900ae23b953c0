// Messages between ranks through one MPI library. Everything but `openLibrary` is called by the one thread that owns MPI.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace opt {

/** The values of these are known to addon.ts. */
enum class Kind { receive = 0, send = 1, reduce = 2 };
enum class Element { f32 = 0, f64 = 1, i32 = 2, u8 = 3 };
enum class Reduction { sum = 0, min = 1, max = 2 };

struct Message {
  uint32_t id;
  Kind kind;
  /** Of messages between two ranks. */
  int peer, tag;
  uint8_t* bytes;
  size_t length;
  /** Of reductions over all ranks, in place. */
  Element element;
  Reduction reduction;
};

/** How a message ended. */
enum class Outcome { moved = 0, shorter = 1, longer = 2, peerEnded = 3, failed = 4 };

struct Completion {
  uint32_t id;
  Outcome outcome;
  /** Bytes that came where they were fewer; the rank that a reduction lacks. */
  size_t count;
  /** The library's words where it failed. */
  std::string text;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /** MPI_Init_thread. `piece`: longer messages are cut, because counts are ints. @throws std::runtime_error */
  virtual void init(size_t piece) = 0;
  virtual void post(const Message& message) = 0;
  /** Appends what has ended. True if anything did. */
  virtual bool progress(std::vector<Completion>& done) = 0;
  /** Whether messages are under way; those alone that others need. */
  virtual bool isBusy() const = 0;
  virtual bool isNeeded() const = 0;
  /** Bytes of messages under way: many of them move only while the library is asked. */
  virtual size_t load() const = 0;
  /** Tells all ranks that nothing more comes from this one, and gives up what it waits for. */
  virtual void leave() = 0;
  /** After `leave`: all other ranks have left, too. MPI_Finalize would wait for that, and spin. */
  virtual bool hasEnded() const = 0;
  virtual void finalize() = 0;
  virtual void abort(int code) = 0;

  int rank = 0, size = 1;
  std::string version;
};

/** "open-mpi", "mpich", "standard": how a library speaks. Null where it does not open, or is no MPI: then `problem` says why. */
struct Library {
  void* handle;
  std::string abi;
};
std::unique_ptr<Transport> openLibrary(const char* path, Library& library, std::string& problem);

}  // namespace opt
