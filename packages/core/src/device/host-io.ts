/** Native code for files and for the host's own memory. It has nothing to do with tensors: whoever stores bytes uses it. */
import { checkValue } from "../errors/check-value";
import type { ErrorCode } from "../errors/errors";

/** Native functions for files and the host's memory. Each is absent where the platform has nothing better than JavaScript's host. */
export interface HostIo {
  /** zlib's CRC-32 of bytes that follow others, whose checksum is `before`. */
  crc32?(bytes: Uint8Array, before: number): number;
  /**
   * Fills all of `bytes` from `position` of an open file (its descriptor): a promise of their CRC-32, taken by the threads that read. It
   * resolves to undefined if the file is too short or the system fails. Until it settles the file stays open, and the memory where it is.
   */
  read?(file: number, bytes: Uint8Array, position: number): Promise<number | undefined>;
  /**
   * Bytes of an open file as memory: what is written there is in the file, and seen by whoever maps it. `offset` is a multiple of 64 KiB.
   * The file must be as long, and its room taken, before they are touched. Undefined if the system can't do it.
   */
  map?(file: number, offset: number, bytes: number): Uint8Array | undefined;
  /** New memory, zeros, that begins with a page; in large pages where the system has some, which disks take sooner. */
  pages?(bytes: number): Uint8Array;
  /** Copies bytes to others of the same length, which share none with them, by several threads: each gets new pages on its own. */
  copy?(target: Uint8Array, source: Uint8Array): void;
}

interface HostIoEntry {
  readonly load: () => HostIo;
  loaded?: HostIo;
}

/** One for each process, shared by every copy of core that is loaded. */
const shared = globalThis as { [key: symbol]: HostIoEntry | undefined };
const key = Symbol.for("@opt/core.host-io");

/**
 * Makes native code for files known. `load` is called once, when `hostIo` is; if it throws DEVICE_UNAVAILABLE, `hostIo` gives no functions.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function registerHostIo(load: () => HostIo): void {
  checkValue(typeof load === "function", "registerHostIo", "load", "a function", load);
  shared[key] = { load };
}

/** The native code for files that an imported package has registered; without one, an object with no functions. */
export function hostIo(): HostIo {
  const registered = shared[key];
  if (registered === undefined) return NOTHING;
  registered.loaded ??= loaded(registered.load);
  return registered.loaded;
}

const NOTHING: HostIo = {};
const ABSENT: ErrorCode = "DEVICE_UNAVAILABLE";

function loaded(load: () => HostIo): HostIo {
  try {
    return load();
  } catch (error) {
    // By its code, for it may be another copy's OptError.
    if ((error as { code?: unknown }).code !== ABSENT) throw error;
    return NOTHING;
  }
}
