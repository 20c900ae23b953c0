// The functions that are used of each library, by the types of their arguments. The types stand for NVIDIA's own:
// int for CUdevice and enumerations, uint64_t for device addresses, void* for handles.
#pragma once
#include "call.h"

namespace opt {

using Handle = void*;
using Address = uint64_t;

inline void bindDriver(Napi::Env env, Napi::Object& table, void* library) {
  bind<unsigned>(env, table, library, "cuInit");
  bind<int*>(env, table, library, "cuDriverGetVersion");
  bind<int*>(env, table, library, "cuDeviceGetCount");
  bind<int*, int>(env, table, library, "cuDeviceGet");
  bind<char*, int, int>(env, table, library, "cuDeviceGetName");
  bind<int*, int, int>(env, table, library, "cuDeviceGetAttribute");
  bindTaking<Kind::context, Handle*, int>(env, table, library, "cuDevicePrimaryCtxRetain");
  bindReleasing<Kind::context, int>(env, table, library, "cuDevicePrimaryCtxRelease_v2");
  bind<Handle>(env, table, library, "cuCtxSetCurrent");
  bindTaking<Kind::stream, Handle*, unsigned>(env, table, library, "cuStreamCreate");
  bindReleasing<Kind::stream, Handle>(env, table, library, "cuStreamDestroy_v2");
  bind<Handle>(env, table, library, "cuStreamSynchronize");
  bind<Handle, Handle, unsigned>(env, table, library, "cuStreamWaitEvent");
  bindTaking<Kind::event, Handle*, unsigned>(env, table, library, "cuEventCreate");
  bindReleasing<Kind::event, Handle>(env, table, library, "cuEventDestroy_v2");
  bind<Handle, Handle>(env, table, library, "cuEventRecord");
  bind<Handle>(env, table, library, "cuEventQuery");
  bind<Handle>(env, table, library, "cuEventSynchronize");
  bindTaking<Kind::memory, Address*, size_t>(env, table, library, "cuMemAlloc_v2");
  bindReleasing<Kind::memory, Address>(env, table, library, "cuMemFree_v2");
  bind<size_t*, size_t*>(env, table, library, "cuMemGetInfo_v2");
  bindTaking<Kind::pinned, Handle*, size_t>(env, table, library, "cuMemAllocHost_v2");
  bindReleasing<Kind::pinned, Handle>(env, table, library, "cuMemFreeHost");
  bind<Address, Handle, size_t, Handle>(env, table, library, "cuMemcpyHtoDAsync_v2");
  bind<Handle, Address, size_t, Handle>(env, table, library, "cuMemcpyDtoHAsync_v2");
  bind<Address, Address, size_t, Handle>(env, table, library, "cuMemcpyDtoDAsync_v2");
  bindTaking<Kind::module, Handle*, const void*>(env, table, library, "cuModuleLoadData");
  bindReleasing<Kind::module, Handle>(env, table, library, "cuModuleUnload");
  bind<Handle*, Handle, const char*>(env, table, library, "cuModuleGetFunction");
  bind<Handle, int>(env, table, library, "cuStreamBeginCapture_v2");
  bind<Handle, Handle*>(env, table, library, "cuStreamEndCapture");
  bindTaking<Kind::graph, Handle*, Handle, unsigned long long>(env, table, library, "cuGraphInstantiateWithFlags");
  bind<Handle, Handle>(env, table, library, "cuGraphLaunch");
  bindReleasing<Kind::graph, Handle>(env, table, library, "cuGraphExecDestroy");
  bind<Handle>(env, table, library, "cuGraphDestroy");
}

inline void bindCompiler(Napi::Env env, Napi::Object& table, void* library) {
  bind<Handle*, const char*, const char*, int, Handle, Handle>(env, table, library, "nvrtcCreateProgram");
  bind<Handle, int, Handle>(env, table, library, "nvrtcCompileProgram");
  bind<Handle, size_t*>(env, table, library, "nvrtcGetProgramLogSize");
  bind<Handle, char*>(env, table, library, "nvrtcGetProgramLog");
  bind<Handle, size_t*>(env, table, library, "nvrtcGetCUBINSize");
  bind<Handle, char*>(env, table, library, "nvrtcGetCUBIN");
  bind<Handle*>(env, table, library, "nvrtcDestroyProgram");
}

}  // namespace opt
