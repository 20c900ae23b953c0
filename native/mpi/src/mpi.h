/** Messages through the functions of an MPI library, whose binary interface is `Abi` (abi.h). */
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <utility>

#include "abi.h"
#include "keep-signals.h"
#include "transport.h"

namespace opt {

/** Tags of the engine are below 2^26; a library with fewer gets more communicators. */
constexpr int TAGS = 1 << 26;
constexpr int MOST_COMMUNICATORS = 256;
/** What needs a rank that has said that it leaves may have ended well all the same: this side's library tells it a moment later. */
constexpr auto FAREWELL_SETTLES = std::chrono::seconds(1);

template <class Abi>
class Mpi : public Transport {
  using Handle = typename Abi::Handle;
  using Status = typename Abi::Status;
  using Clock = std::chrono::steady_clock;

 public:
  explicit Mpi(void* library) : library(library) {}

  void init(size_t pieceBytes) override {
    piece = pieceBytes;
    {
      KeepSignals keep;
      int provided = 0;
      check(call<int(int*, char***, int, int*)>("MPI_Init_thread")(nullptr, nullptr, Abi::FUNNELED, &provided), "MPI_Init_thread");
      if (provided < Abi::FUNNELED) throw std::runtime_error("the MPI library does not work beside other threads");
    }
    const Handle world = Abi::world(library);
    byte = Abi::byte(library);
    nullRequest = Abi::nullRequest(library);
    iallreduce = call<int(const void*, void*, int, Handle, Handle, Handle, Handle*)>("MPI_Iallreduce");
    isend = call<int(const void*, int, Handle, int, int, Handle, Handle*)>("MPI_Isend");
    irecv = call<int(void*, int, Handle, int, int, Handle, Handle*)>("MPI_Irecv");
    testsome = call<int(int, Handle*, int*, int*, Status*)>("MPI_Testsome");
    getCount = call<int(const Status*, Handle, int*)>("MPI_Get_count");
    testCancelled = call<int(const Status*, int*)>("MPI_Test_cancelled");
    cancel = call<int(Handle*)>("MPI_Cancel");
    check(call<int(Handle, int*)>("MPI_Comm_rank")(world, &rank), "MPI_Comm_rank");
    check(call<int(Handle, int*)>("MPI_Comm_size")(world, &size), "MPI_Comm_size");
    version = text(8192, [&](char* words, int* length) { return call<int(char*, int*)>("MPI_Get_library_version")(words, length); });
    check(call<int(Handle, Handle)>("MPI_Comm_set_errhandler")(world, Abi::errorsReturn(library)), "MPI_Comm_set_errhandler");

    int* bound = nullptr;
    int isSet = 0;
    check(call<int(Handle, int, void*, int*)>("MPI_Comm_get_attr")(world, Abi::TAG_UB, &bound, &isSet), "MPI_Comm_get_attr");
    const int most = isSet ? *bound : 32767;
    room = most < TAGS ? most : TAGS;  // the tag after these is that of shutdowns
    const int needed = (TAGS + room - 1) / room;
    if (needed > MOST_COMMUNICATORS) throw std::runtime_error("the MPI library has tags up to " + std::to_string(most) + " only");
    for (int i = 0; i < needed; i++) {
      Handle own;
      check(call<int(Handle, Handle*)>("MPI_Comm_dup")(world, &own), "MPI_Comm_dup");
      communicators.push_back(own);
    }
    check(call<int(Handle, Handle*)>("MPI_Comm_dup")(world, &together), "MPI_Comm_dup");
    ended.resize(size);
    awaited = (size - 1) * communicators.size();
    if (size == 1) return;
    for (Handle communicator : communicators) {
      shutdowns[communicator] = size - 1;
      awaitFarewell(communicator);
    }
  }

  void post(const Message& message) override {
    if (message.kind == Kind::reduce) return reduce(message);
    const bool isSend = message.kind == Kind::send;
    if (isSend && ended[message.peer].hasEnded) {
      immediate.push_back({message.id, Outcome::peerEnded, 0, ""});
      return;
    }
    auto* moving = new Moving{message, communicators[message.tag / room], 0, Outcome::moved, 0, "", false};
    // The last piece is always shorter than a whole one, so that the other side sees where a message ends.
    const size_t whole = message.length / piece;
    for (size_t i = 0; i <= whole; i++) {
      const int count = static_cast<int>(i < whole ? piece : message.length % piece);
      uint8_t* bytes = message.bytes + i * piece;
      Handle request = nullRequest;
      const int tag = message.tag % room;
      const int error = isSend ? isend(bytes, count, byte, message.peer, tag, moving->communicator, &request)
                               : irecv(bytes, count, byte, message.peer, tag, moving->communicator, &request);
      if (error != 0) {
        moving->outcome = Outcome::failed;
        moving->text = words(error);
        break;
      }
      moving->pieces++;
      add(request, {moving, count, moving->communicator});
    }
    (isSend ? needed : receives)++;
    underWay += message.length;
    if (moving->pieces == 0) end(moving, immediate);
    else if (!isSend && ended[message.peer].hasEnded) cancelReceives(message.peer);
  }

  bool progress(std::vector<Completion>& done) override {
    const size_t before = done.size();
    done.insert(done.end(), immediate.begin(), immediate.end());
    immediate.clear();
    if (requests.empty()) return done.size() > before;
    const int count = static_cast<int>(requests.size());
    indices.resize(count);
    statuses.resize(count);
    int completed = 0;
    const int error = testsome(count, requests.data(), &completed, indices.data(), statuses.data());
    const bool inStatus = error != 0 && classOf(error) == Abi::ERR_IN_STATUS;
    if (error != 0 && !inStatus) throw std::runtime_error("MPI_Testsome: " + words(error));
    if (completed > 0) {
      std::vector<std::pair<int, Handle>> leaving;
      for (int i = 0; i < completed; i++) {
        const Part part = parts[indices[i]];
        if (part.moving == nullptr) leaving.emplace_back(statuses[i].source, part.communicator);
        else partEnded(part, statuses[i], inStatus ? statuses[i].error : 0, done);
      }
      compact();
      for (const auto& [peer, communicator] : leaving) shutdown(peer, communicator);
    }
    if (unsettled > 0) giveUpSends(done);
    return completed > 0 || done.size() > before;
  }

  bool isBusy() const override { return needed + receives > 0; }
  bool isNeeded() const override { return needed > 0; }
  size_t load() const override { return underWay; }

  bool hasEnded() const override { return hasLeft && awaited == 0 && needed == 0; }

  void leave() override {
    for (size_t i = 0; i < requests.size(); i++)
      if (parts[i].moving != nullptr && parts[i].moving->message.kind == Kind::receive) cancelOnce(i);
    hasLeft = true;
    for (Handle communicator : communicators)
      for (int i = 1; i < size; i++) {
        Handle request;
        if (isend(nullptr, 0, byte, (rank + i) % size, room, communicator, &request) != 0) continue;
        Message message{};
        message.kind = Kind::send;
        message.peer = (rank + i) % size;
        auto* moving = new Moving{message, communicator, 1, Outcome::moved, 0, "", false};
        needed++;
        add(request, {moving, 0, communicator});
      }
  }

  void finalize() override {
    KeepSignals keep;
    call<int()>("MPI_Finalize")();
  }

  void abort(int code) override { call<int(Handle, int)>("MPI_Abort")(Abi::world(library), code); }

 private:
  /** A message under way, in one or more pieces. */
  struct Moving {
    Message message;
    Handle communicator;
    int pieces;
    Outcome outcome;
    size_t count;
    std::string text;
    /** It needs a rank that has ended: JavaScript does not wait for it any more. */
    bool isGivenUp;
  };
  /** What a request is: a piece, or the shutdown of any rank. */
  struct Part {
    Moving* moving;
    int count;
    Handle communicator;
    bool isCancelled = false;
  };
  struct End {
    bool hasEnded = false;
    bool hasSettled = false;
    Clock::time_point when{};
  };

  template <typename Type>
  Type* call(const char* name) {
    return reinterpret_cast<Type*>(symbolOf(library, name));
  }

  template <typename Get>
  std::string text(size_t most, Get get) {
    std::string words(most, '\0');
    int length = 0;
    if (get(words.data(), &length) != 0) return "";
    words.resize(length);
    return words.substr(0, words.find('\n'));
  }
  std::string words(int error) {
    return text(8192, [&](char* words, int* length) { return call<int(int, char*, int*)>("MPI_Error_string")(error, words, length); });
  }
  int classOf(int error) {
    int value = 0;
    call<int(int, int*)>("MPI_Error_class")(error, &value);
    return value;
  }
  void check(int error, const char* where) {
    if (error != 0) throw std::runtime_error(std::string(where) + ": error " + std::to_string(error));
  }

  void add(Handle request, const Part& part) {
    requests.push_back(request);
    parts.push_back(part);
  }

  void compact() {
    size_t kept = 0;
    for (size_t i = 0; i < requests.size(); i++) {
      if (requests[i] == nullRequest) continue;
      requests[kept] = requests[i];
      parts[kept++] = parts[i];
    }
    requests.resize(kept);
    parts.resize(kept);
  }

  /** Open MPI takes a receive out of its lists each time that it is cancelled. */
  void cancelOnce(size_t i) {
    if (!std::exchange(parts[i].isCancelled, true)) cancel(&requests[i]);
  }

  bool isCancelled(const Status& status) {
    int flag = 0;
    testCancelled(&status, &flag);
    return flag != 0;
  }

  void partEnded(const Part& part, const Status& status, int failure, std::vector<Completion>& done) {
    Moving* moving = part.moving;
    const bool wasWell = moving->outcome == Outcome::moved;
    if (failure != 0) {
      const bool isLonger = classOf(failure) == Abi::ERR_TRUNCATE;
      if (wasWell) moving->outcome = isLonger ? Outcome::longer : Outcome::failed;
      if (!isLonger) moving->text = words(failure);
    } else if (moving->message.kind == Kind::receive) {
      int count = 0;
      if (isCancelled(status)) {
        if (wasWell) moving->outcome = Outcome::peerEnded;
      } else {
        getCount(&status, byte, &count);
        moving->count += count;
        if (count != part.count && wasWell) moving->outcome = Outcome::shorter;
      }
    }
    // The other pieces will not come.
    if (wasWell && moving->outcome != Outcome::moved && moving->message.kind == Kind::receive)
      for (size_t i = 0; i < requests.size(); i++)
        if (parts[i].moving == moving && requests[i] != nullRequest) cancelOnce(i);
    if (--moving->pieces == 0) end(moving, done);
  }

  void end(Moving* moving, std::vector<Completion>& done) {
    if (!moving->isGivenUp) {
      (moving->message.kind == Kind::receive ? receives : needed)--;
      underWay -= moving->message.length;
      if (!hasLeft) done.push_back({moving->message.id, moving->outcome, moving->count, moving->text});
    }
    delete moving;
  }

  void awaitFarewell(Handle communicator) {
    Handle request;
    check(irecv(nullptr, 0, byte, Abi::ANY_SOURCE, room, communicator, &request), "MPI_Irecv");
    add(request, {nullptr, 0, communicator});
  }

  void reduce(const Message& message) {
    if (const int peer = anyThatEnded(); peer >= 0) {
      immediate.push_back({message.id, Outcome::peerEnded, static_cast<size_t>(peer), ""});
      return;
    }
    constexpr size_t WIDTHS[] = {4, 8, 4, 1};
    const size_t width = WIDTHS[static_cast<int>(message.element)];
    auto* moving = new Moving{message, together, 0, Outcome::moved, 0, "", false};
    for (size_t begin = 0; begin < message.length; begin += piece) {
      const int count = static_cast<int>(std::min(piece, message.length - begin) / width);
      Handle request = nullRequest;
      const int error = iallreduce(reinterpret_cast<const void*>(Abi::IN_PLACE), message.bytes + begin, count,
                                   Abi::type(library, message.element), Abi::op(library, message.reduction), together, &request);
      if (error != 0) {
        moving->outcome = Outcome::failed;
        moving->text = words(error);
        break;
      }
      moving->pieces++;
      add(request, {moving, 0, together});
    }
    needed++;
    underWay += message.length;
    if (moving->pieces == 0) end(moving, immediate);
  }

  /** A rank that has left; -1 while all are there. */
  int anyThatEnded() const {
    for (int peer = 0; peer < size; peer++)
      if (ended[peer].hasEnded) return peer;
    return -1;
  }

  /** What `peer` sent before has been matched by now: what it has not sent never comes. */
  void shutdown(int peer, Handle communicator) {
    if (!ended[peer].hasEnded) ended[peer] = {true, false, Clock::now()}, unsettled++;
    cancelReceives(peer);
    awaited--;
    const bool isLast = --shutdowns[communicator] == 0;
    if (!isLast) awaitFarewell(communicator);
  }

  void cancelReceives(int peer) {
    for (size_t i = 0; i < requests.size(); i++)
      if (const Moving* moving = parts[i].moving; moving != nullptr && moving->message.kind == Kind::receive && moving->message.peer == peer)
        cancelOnce(i);
  }

  void giveUpSends(std::vector<Completion>& done) {
    for (int peer = 0; peer < size; peer++) {
      End& end = ended[peer];
      if (!end.hasEnded || end.hasSettled || Clock::now() - end.when < FAREWELL_SETTLES) continue;
      end.hasSettled = true;
      unsettled--;
      for (const Part& part : parts) {
        Moving* moving = part.moving;
        if (moving == nullptr || moving->isGivenUp || moving->message.kind == Kind::receive) continue;
        if (moving->message.kind == Kind::send && moving->message.peer != peer) continue;
        moving->isGivenUp = true;
        needed--;
        underWay -= moving->message.length;
        if (!hasLeft) done.push_back({moving->message.id, Outcome::peerEnded, static_cast<size_t>(peer), ""});
      }
    }
  }

  void* library;
  size_t piece = 0;
  int room = TAGS;
  Handle byte{}, nullRequest{};
  /** Of messages, by the upper part of their tags; of reductions. */
  std::vector<Handle> communicators;
  Handle together{};
  std::vector<Handle> requests;
  std::vector<Part> parts;
  std::vector<int> indices;
  std::vector<Status> statuses;
  std::vector<End> ended;
  /** Farewells that are still to come: of all, and by their communicator. */
  size_t awaited = 0;
  std::map<Handle, int> shutdowns;
  /** Ranks whose shutdown came a moment ago. */
  int unsettled = 0;
  std::vector<Completion> immediate;
  size_t needed = 0, receives = 0, underWay = 0;
  bool hasLeft = false;

  int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*) = nullptr;
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*testsome)(int, Handle*, int*, int*, Status*) = nullptr;
  int (*getCount)(const Status*, Handle, int*) = nullptr;
  int (*testCancelled)(const Status*, int*) = nullptr;
  int (*cancel)(Handle*) = nullptr;
};

}  // namespace opt
