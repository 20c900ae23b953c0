/** The order in which the thread of an async save calls the disk: after a power cut, only what was synced is there. */
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { expect, it } from "vitest";
import { THREAD } from "./shard-thread";

/** Runs the thread's script here, on a disk that only writes down what is asked of it. */
function run(writes: (length: number) => number) {
  const calls: string[] = [];
  const replies: { checksums?: Uint32Array; failed?: { code?: string } }[] = [];
  const buffer = new Uint8Array([1, 2, 3, 4, 5]).buffer;
  const workerData = {
    ...{ path: "file", header: new Uint8Array(8), buffers: [buffer], sha256: false, piece: 4 },
    places: Float64Array.of(0, 0, 1, 0, 1, 4),
  };
  const modules: Record<string, object> = {
    "node:worker_threads": {
      parentPort: {
        postMessage: (reply: object) => {
          replies.push(reply);
          if (!("bytes" in reply)) calls.push("reply");
        },
      },
      workerData,
    },
    "node:fs": {
      openSync: () => calls.push("open"),
      writeSync: (_: number, bytes: Uint8Array, at: number, length: number) => {
        calls.push("write");
        return Math.min(writes(length), bytes.length - at);
      },
      fsyncSync: () => calls.push("sync"),
      closeSync: () => calls.push("close"),
    },
    "node:crypto": { createHash },
    "node:zlib": { crc32 },
  };
  new Function("require", THREAD)((name: string) => modules[name]);
  return { calls: calls.filter((call, i) => call !== calls[i - 1]), last: replies.at(-1)! };
}

it("syncs the file after its last byte and before it says that it is written", () => {
  for (const most of [100, 1]) {
    const { calls, last } = run(() => most);
    expect(calls).toEqual(["open", "write", "sync", "close", "reply"]);
    expect([...last.checksums!]).toEqual([crc32(Uint8Array.of(1)), crc32(Uint8Array.of(2, 3, 4, 5))]);
  }
});

it("closes the file and tells what the disk rejected", () => {
  const { calls, last } = run(() => {
    throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
  });
  expect(calls).toEqual(["open", "write", "close", "reply"]);
  expect(last.failed).toMatchObject({ code: "ENOSPC" });
});
