/** The native addon's handful of functions. */
import type { TypedArray } from "@opt/core/backend";

/** Functions of native/cpu/src/addon.cc. */
export interface Addon {
  /** Names of the instruction sets that the binary holds, best last; null where this processor lacks one or `OPT_CPU_HIDE` hides it. */
  instructionSets(): (string | null)[];
  /** The format of the commands that it reads. */
  commandFormat(): number;
  /** Hashes of the rules compiled ahead; a rule's place is its number. */
  ruleHashes(): string[];
  /** The same of row programs. */
  rowHashes(): string[];
  /** Where the bytes of a view lie, until its buffer is detached. */
  address(view: TypedArray): number;
  /** Moves memory that has been written to into huge pages, where the system has some that must be asked for. */
  adviseHugePages?(address: number, bytes: number): void;
  /** Of memory that nothing was written to yet, a part is used, by huge pages, and the rest never. */
  useHugePages?(address: number, bytes: number, used: number, usedBytes: number): void;
  /** Gives the whole pages of a range back to the system: they are zeros when they are used again. */
  releasePages?(address: number, bytes: number): void;
  /** Of two views of bytes, of one length, that share none. */
  copyBytes(target: Uint8Array, source: Uint8Array, threads: number): void;
  /** Bytes of an open file, shared with all who map them; null where the system fails. Absent where it can't. */
  mapFile?(file: number, offset: number, bytes: number): ArrayBuffer | null;
  /** Detaches the buffer of a view, which frees its memory at once. */
  release(view: TypedArray): void;
  /** Carries out the command at an address. */
  run(instructionSet: number, command: number): number;
  /** zlib's CRC-32 of bytes that follow others, whose checksum is `before`; absent where the processor has nothing for it. */
  crc32?(bytes: Uint8Array, before: number): number;
  /** Fills a view from an open file, by a thread of libuv's: the bytes' CRC-32, or undefined where not all were there. Absent as `crc32`, or where the system has no such calls. */
  readFile?(file: number, bytes: Uint8Array, position: number): Promise<number | undefined>;
}
