/**
 * The functions that are used of NVIDIA's driver, by their own names. Handles and device addresses are numbers; results are written
 * into arrays of the caller's; what returns is the driver's status. Tests put a table of their own in its place.
 */
export type Out = BigUint64Array | Uint8Array | Float32Array;

export interface Driver {
  cuInit(flags: number): number;
  cuDriverGetVersion(version: Out): number;
  cuDeviceGetCount(count: Out): number;
  cuDeviceGet(device: Out, ordinal: number): number;
  cuDeviceGetName(name: Out, length: number, device: number): number;
  cuDeviceGetAttribute(value: Out, attribute: number, device: number): number;
  cuDevicePrimaryCtxRetain(context: Out, device: number): number;
  cuDevicePrimaryCtxRelease_v2(device: number): number;
  cuCtxSetCurrent(context: number): number;
  cuStreamCreate(stream: Out, flags: number): number;
  cuStreamDestroy_v2(stream: number): number;
  cuStreamSynchronize(stream: number): number;
  cuStreamWaitEvent(stream: number, event: number, flags: number): number;
  cuEventCreate(event: Out, flags: number): number;
  cuEventDestroy_v2(event: number): number;
  cuEventRecord(event: number, stream: number): number;
  cuEventQuery(event: number): number;
  cuEventSynchronize(event: number): number;
  cuMemAlloc_v2(address: Out, bytes: number): number;
  cuMemFree_v2(address: number): number;
  cuMemGetInfo_v2(free: Out, total: Out): number;
  cuMemAllocHost_v2(address: Out, bytes: number): number;
  cuMemFreeHost(address: number): number;
  cuMemcpyHtoDAsync_v2(target: number, source: number, bytes: number, stream: number): number;
  cuMemcpyDtoHAsync_v2(target: number, source: number, bytes: number, stream: number): number;
  cuMemcpyDtoDAsync_v2(target: number, source: number, bytes: number, stream: number): number;
  cuModuleLoadData(module: Out, image: Uint8Array): number;
  cuModuleUnload(module: number): number;
  cuModuleGetFunction(entry: Out, module: number, name: string): number;
  cuStreamBeginCapture_v2(stream: number, mode: number): number;
  cuStreamEndCapture(stream: number, graph: Out): number;
  cuGraphInstantiateWithFlags(executable: Out, graph: number, flags: number): number;
  cuGraphLaunch(executable: number, stream: number): number;
  cuGraphExecDestroy(executable: number): number;
  cuGraphDestroy(graph: number): number;

  /** cuLaunchKernel in one dimension, with all arguments packed in one array. */
  launch(entry: number, blocks: number, threads: number, stream: number, args: Uint8Array, bytes: number): number;
  /** The driver's name and words for a status. */
  errorText(status: number): string;
  /** cuEventSynchronize on another thread. */
  waitForEvent(context: number, event: number): Promise<number>;
  /** memcpy on the host in a stream's order (cuLaunchHostFunc). The caller keeps `target` alive until that has happened. */
  copyInOrder(stream: number, target: Uint8Array, source: number): number;
  /** Host memory that is not JavaScript's. */
  store(address: number, bytes: Uint8Array): void;
  load(bytes: Uint8Array, address: number): void;
}

/** What a driver must have. */
export const DRIVER_FUNCTIONS = [
  ...(["cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName"] as const),
  ...(["cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent"] as const),
  ...(["cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamWaitEvent"] as const),
  ...(["cuEventCreate", "cuEventDestroy_v2", "cuEventRecord", "cuEventQuery", "cuEventSynchronize"] as const),
  ...(["cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetInfo_v2", "cuMemAllocHost_v2", "cuMemFreeHost"] as const),
  ...(["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"] as const),
  ...(["cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction"] as const),
  ...(["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"] as const),
  ...(["cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy", "launch", "copyInOrder"] as const),
] satisfies readonly (keyof Driver)[];

/** CUresult. */
export const STATUS = {
  success: 0,
  outOfMemory: 2,
  notFound: 500,
  notReady: 600,
} as const;

/**
 * CUresults after which a context answers nothing else: a driver that was shut down, errors of memory and links that cannot be corrected
 * or were contained, a context that is gone, illegal addresses, timeouts, assertions, faults of instructions and of launches, a client
 * of MPS that was terminated, a device from outside that failed.
 */
const STICKY: ReadonlySet<number> = new Set([
  4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 809, 911,
]);

export function isSticky(status: number): boolean {
  return STICKY.has(status);
}

/** CUdevice_attribute. */
export const ATTRIBUTE = { multiprocessors: 16, computeMajor: 75, computeMinor: 76 } as const;

/** CU_STREAM_NON_BLOCKING: no order with the legacy default stream. */
export const STREAM_NON_BLOCKING = 1;
/** CU_EVENT_BLOCKING_SYNC, and CU_EVENT_DISABLE_TIMING beside it. */
export const EVENT_BLOCKING = 1;
export const EVENT_UNTIMED = 2;
/** CU_STREAM_CAPTURE_MODE_RELAXED: memory may be allocated meanwhile. */
export const CAPTURE_RELAXED = 2;
