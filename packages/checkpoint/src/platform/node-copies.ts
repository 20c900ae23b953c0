/** Copies of tensors that another thread writes, in shared memory that one save leaves to the next. */
import { hostIo } from "@opt/core";
import type { ThreadCopies } from "./platform";

/** Small copies lie together in memory of this size: a thread is given one piece after the other, and each takes its time. */
const TOGETHER = 1 << 20;

/** From this length on several threads are done sooner than one. */
const LONG = 1 << 20;

/** Left to the next save at most: the first use of memory costs several times the copy. */
const MOST = 512 * 2 ** 20;

/** Longest left first. */
const left: SharedArrayBuffer[] = [];

/** @param most bytes that `free` leaves to the next, of this save and of earlier ones together */
export function threadCopies(most = MOST): ThreadCopies {
  let taken: SharedArrayBuffer[] = [];
  let rest = new Uint8Array(new SharedArrayBuffer(0));
  const take = (length: number) => {
    const at = left.findIndex(({ byteLength }) => byteLength === length);
    const buffer = at < 0 ? new SharedArrayBuffer(length) : left.splice(at, 1)[0]!;
    taken.push(buffer);
    return new Uint8Array(buffer);
  };
  const room = (length: number) => {
    if (length > TOGETHER) return take(length);
    if (length > rest.length) rest = take(TOGETHER);
    const part = rest.subarray(0, length);
    rest = rest.subarray(length);
    return part;
  };
  return {
    copy(bytes) {
      const copy = room(bytes.length);
      const { copy: byThreads } = hostIo();
      if (byThreads && bytes.length >= LONG) byThreads(copy, bytes);
      else copy.set(bytes);
      return copy;
    },
    free() {
      left.push(...taken);
      [taken, rest] = [[], rest.subarray(0, 0)];
      let bytes = left.reduce((sum, { byteLength }) => sum + byteLength, 0);
      while (bytes > most) bytes -= left.shift()!.byteLength;
    },
  };
}
