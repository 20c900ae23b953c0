// The three ways in which MPI libraries lay out handles, statuses and constants. One binary speaks all of them; no header of MPI is needed.
// Sources: the headers of Open MPI 4 and 5, MPICH's ABI initiative (MPICH, Intel MPI, MVAPICH, Cray), and chapter 20 of MPI 5.0.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "transport.h"

namespace opt {

inline void* symbolOf(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == nullptr) throw std::runtime_error(std::string("the MPI library has no ") + name);
  return address;
}

/** Handles are addresses of objects that the library exports. */
struct OpenMpi {
  using Handle = void*;
  struct Status {
    int source, tag, error, cancelled;
    size_t count;
  };
  static constexpr int FUNNELED = 1, TAG_UB = 0, ANY_SOURCE = -1, ERR_TRUNCATE = 15, ERR_IN_STATUS = 18;
  static constexpr intptr_t IN_PLACE = 1;
  static Handle type(void* library, Element element) {
    constexpr const char* NAMES[] = {"ompi_mpi_float", "ompi_mpi_double", "ompi_mpi_int32_t", "ompi_mpi_uint8_t"};
    return symbolOf(library, NAMES[static_cast<int>(element)]);
  }
  static Handle op(void* library, Reduction reduction) {
    constexpr const char* NAMES[] = {"ompi_mpi_op_sum", "ompi_mpi_op_min", "ompi_mpi_op_max"};
    return symbolOf(library, NAMES[static_cast<int>(reduction)]);
  }
  static Handle world(void* library) { return symbolOf(library, "ompi_mpi_comm_world"); }
  static Handle byte(void* library) { return symbolOf(library, "ompi_mpi_byte"); }
  static Handle errorsReturn(void* library) { return symbolOf(library, "ompi_mpi_errors_return"); }
  static Handle nullRequest(void* library) { return symbolOf(library, "ompi_request_null"); }
};

/** Handles are integers. */
struct Mpich {
  using Handle = int;
  struct Status {
    int countLow, countHighAndCancelled, source, tag, error;
  };
  static constexpr int FUNNELED = 1, TAG_UB = 0x64400001, ANY_SOURCE = -2, ERR_TRUNCATE = 14, ERR_IN_STATUS = 17;
  static constexpr intptr_t IN_PLACE = -1;
  static Handle type(void*, Element element) {
    constexpr Handle TYPES[] = {0x4c00040a, 0x4c00080b, 0x4c000405, 0x4c000102};
    return TYPES[static_cast<int>(element)];
  }
  static Handle op(void*, Reduction reduction) {
    constexpr Handle OPS[] = {0x58000003, 0x58000002, 0x58000001};
    return OPS[static_cast<int>(reduction)];
  }
  static Handle world(void*) { return 0x44000000; }
  static Handle byte(void*) { return 0x4c00010d; }
  static Handle errorsReturn(void*) { return 0x54000001; }
  static Handle nullRequest(void*) { return 0x2c000000; }
};

/** Handles are pointers of fixed values: the application binary interface of MPI 5. */
struct Standard {
  using Handle = void*;
  struct Status {
    int source, tag, error, internal[5];
  };
  static constexpr int FUNNELED = 1024, TAG_UB = 501, ANY_SOURCE = -1, ERR_TRUNCATE = 15, ERR_IN_STATUS = 19;
  static constexpr intptr_t IN_PLACE = 1;
  static Handle type(void*, Element element) {
    constexpr uintptr_t TYPES[] = {0x210, 0x214, 0x250, 0x241};
    return fixed(TYPES[static_cast<int>(element)]);
  }
  static Handle op(void*, Reduction reduction) {
    constexpr uintptr_t OPS[] = {0x21, 0x22, 0x23};
    return fixed(OPS[static_cast<int>(reduction)]);
  }
  static Handle fixed(uintptr_t value) { return reinterpret_cast<Handle>(value); }
  static Handle world(void*) { return fixed(0x101); }
  static Handle byte(void*) { return fixed(0x247); }
  static Handle errorsReturn(void*) { return fixed(0x143); }
  static Handle nullRequest(void*) { return fixed(0x180); }
};

}  // namespace opt
