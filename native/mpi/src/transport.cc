#include "transport.h"

#include <cstdlib>

#include "abi.h"
#include "keep-signals.h"
#include "mpi.h"

namespace opt {

std::unique_ptr<Transport> openLibrary(const char* path, Library& library, std::string& problem) {
  KeepSignals keep;
  // UCX, which MPI libraries load, tries its hooks by sbrk(page), sbrk(-page). Where the first fails, because the engine's pages lie behind
  // the heap, the second takes away the heap's last page, which is in use.
  setenv("UCX_MEM_EVENTS", "no", 0);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    problem = dlerror();
    return nullptr;
  }
  if (dlsym(handle, "MPI_Init_thread") == nullptr) {
    problem = std::string(path == nullptr ? "this process" : path) + " is no MPI library";
    dlclose(handle);
    return nullptr;
  }
  library.handle = handle;
  int major = 0, minor = 0;
  const auto abiVersion = reinterpret_cast<int (*)(int*, int*)>(dlsym(handle, "MPI_Abi_get_version"));
  if (abiVersion != nullptr && abiVersion(&major, &minor) == 0 && major > 0) {
    library.abi = "standard";
    return std::make_unique<Mpi<Standard>>(handle);
  }
  if (dlsym(handle, "ompi_mpi_comm_world") != nullptr) {
    library.abi = "open-mpi";
    // Its plugins do not name the library that they need.
    if (path != nullptr) dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    return std::make_unique<Mpi<OpenMpi>>(handle);
  }
  library.abi = "mpich";
  return std::make_unique<Mpi<Mpich>>(handle);
}

}  // namespace opt
