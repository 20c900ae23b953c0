// The standard ABI of MPI 5 over Open MPI 4, for the few functions that the addon calls: no library of a distribution has it yet.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void* Handle;
typedef struct { int source, tag, error, internal[5]; } Status;
typedef struct { int source, tag, error, cancelled; size_t count; } Own;

static void* library;

static void* own(const char* name) {
  if (library == NULL) library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  void* address = dlsym(library, name);
  if (address == NULL) abort();
  return address;
}

static Handle in(Handle handle) {
  switch ((uintptr_t)handle) {
    case 0x101: return own("ompi_mpi_comm_world");
    case 0x143: return own("ompi_mpi_errors_return");
    case 0x180: return own("ompi_request_null");
    case 0x21: return own("ompi_mpi_op_sum");
    case 0x22: return own("ompi_mpi_op_min");
    case 0x23: return own("ompi_mpi_op_max");
    case 0x210: return own("ompi_mpi_float");
    case 0x214: return own("ompi_mpi_double");
    case 0x241: return own("ompi_mpi_uint8_t");
    case 0x247: return own("ompi_mpi_byte");
    case 0x250: return own("ompi_mpi_int32_t");
    default: return handle;
  }
}

static Handle out(Handle handle) { return handle == own("ompi_request_null") ? (Handle)0x180 : handle; }

static Own statusIn(const Status* status) {
  Own result = {status->source, status->tag, status->error, status->internal[0], 0};
  result.count = ((size_t)(unsigned)status->internal[2] << 32) | (unsigned)status->internal[1];
  return result;
}

static Status statusOut(const Own* status) {
  Status result = {status->source, status->tag, status->error, {status->cancelled, (int)status->count, (int)(status->count >> 32), 0, 0}};
  return result;
}

#define CALL(result, name, ...) ((result(*)(__VA_ARGS__))own(name))

int MPI_Abi_get_version(int* major, int* minor) { return *major = 1, *minor = 0, 0; }
int MPI_Init_thread(int* count, char*** values, int required, int* provided) {
  int level = 0;
  const int error = CALL(int, "MPI_Init_thread", int*, char***, int, int*)(count, values, required / 1024, &level);
  *provided = level * 1024;
  return error;
}
int MPI_Comm_rank(Handle comm, int* rank) { return CALL(int, "MPI_Comm_rank", Handle, int*)(in(comm), rank); }
int MPI_Comm_size(Handle comm, int* size) { return CALL(int, "MPI_Comm_size", Handle, int*)(in(comm), size); }
int MPI_Comm_dup(Handle comm, Handle* copy) { return CALL(int, "MPI_Comm_dup", Handle, Handle*)(in(comm), copy); }
int MPI_Comm_set_errhandler(Handle comm, Handle handler) {
  return CALL(int, "MPI_Comm_set_errhandler", Handle, Handle)(in(comm), in(handler));
}
int MPI_Comm_get_attr(Handle comm, int key, void* value, int* flag) {
  return CALL(int, "MPI_Comm_get_attr", Handle, int, void*, int*)(in(comm), key == 501 ? 0 : key, value, flag);
}
int MPI_Get_library_version(char* text, int* length) { return CALL(int, "MPI_Get_library_version", char*, int*)(text, length); }
int MPI_Error_string(int code, char* text, int* length) { return CALL(int, "MPI_Error_string", int, char*, int*)(code, text, length); }
int MPI_Error_class(int code, int* value) {
  const int error = CALL(int, "MPI_Error_class", int, int*)(code, value);
  if (*value == 18 || *value == 19) *value = 37 - *value;  // in status, pending
  return error;
}
int MPI_Isend(const void* bytes, int count, Handle type, int peer, int tag, Handle comm, Handle* request) {
  return CALL(int, "MPI_Isend", const void*, int, Handle, int, int, Handle, Handle*)(bytes, count, in(type), peer, tag, in(comm), request);
}
int MPI_Irecv(void* bytes, int count, Handle type, int peer, int tag, Handle comm, Handle* request) {
  return CALL(int, "MPI_Irecv", void*, int, Handle, int, int, Handle, Handle*)(bytes, count, in(type), peer, tag, in(comm), request);
}
int MPI_Iallreduce(const void* from, void* to, int count, Handle type, Handle op, Handle comm, Handle* request) {
  return CALL(int, "MPI_Iallreduce", const void*, void*, int, Handle, Handle, Handle, Handle*)(from, to, count, in(type), in(op),
                                                                                              in(comm), request);
}
int MPI_Cancel(Handle* request) { return CALL(int, "MPI_Cancel", Handle*)(request); }
int MPI_Testsome(int count, Handle* requests, int* done, int* indices, Status* statuses) {
  Own* results = calloc(count, sizeof(Own));
  for (int i = 0; i < count; i++) requests[i] = in(requests[i]);
  const int error = CALL(int, "MPI_Testsome", int, Handle*, int*, int*, Own*)(count, requests, done, indices, results);
  for (int i = 0; i < count; i++) requests[i] = out(requests[i]);
  for (int i = 0; i < *done; i++) statuses[i] = statusOut(&results[i]);
  free(results);
  return error;
}
int MPI_Get_count(const Status* status, Handle type, int* count) {
  const Own converted = statusIn(status);
  return CALL(int, "MPI_Get_count", const Own*, Handle, int*)(&converted, in(type), count);
}
int MPI_Test_cancelled(const Status* status, int* flag) {
  const Own converted = statusIn(status);
  return CALL(int, "MPI_Test_cancelled", const Own*, int*)(&converted, flag);
}
int MPI_Abort(Handle comm, int code) { return CALL(int, "MPI_Abort", Handle, int)(in(comm), code); }
int MPI_Finalize(void) { return CALL(int, "MPI_Finalize", void)(); }
