/** Small files that would be large: rejected before they fill the memory. */
import { describe, expect, it } from "vitest";
import { memoryFiles } from "../../testing/disks/memory-files";
import { expectCode } from "../../testing/expect-code";
import * as made from "../../testing/files/made-files";
import type { TensorSource } from "../format/source";
import { openForeign } from "./registry";

const open = (name: string, bytes: Uint8Array): Promise<TensorSource> =>
  openForeign(`/root/${name}`, memoryFiles({ [name]: bytes }));

/** A pickle: protocol 2, these bytes, STOP. */
const program = (...parts: (number[] | Uint8Array)[]): Uint8Array =>
  made.torchZipOf(Buffer.concat([[0x80, 2], ...parts, [0x2e]].map((part) => Uint8Array.from(part))), {});
const times = (count: number, ...bytes: number[]): Uint8Array =>
  Buffer.alloc(count * bytes.length, Uint8Array.from(bytes));

describe("hostile files", () => {
  it.each([
    ["nothing but dicts", program(times(8 << 20, 0x7d))],
    ["lists in lists", program(times(1_500_000, 0x5d), times(1_499_999, 0x61))],
    // A list of 1000 numbers, stored once and recalled a hundred thousand times.
    [
      "one list, again and again",
      program([0x5d, 0x28, 0x5d, 0x71, 0, 0x28], times(1000, 0x4b, 1), [0x65], times(100_000, 0x68, 0), [0x65]),
    ],
  ])("a pickle of %s is rejected", async (_, bytes) => {
    const before = process.memoryUsage().rss;
    await expectCode("CORRUPT", open("a.pt", bytes));
    expect(process.memoryUsage().rss - before).toBeLessThan(300 << 20);
  });

  it("a pickle of more plain values than a run has is rejected", async () => {
    const epochs = (length: number) => program([0x5d, 0x28], times(length, 0x4b, 1), [0x65]);
    await expectCode("CORRUPT", open("a.pt", epochs(4_100_000)));
    expect((await open("a.pt", epochs(600_000))).values["599999"]).toBe(1);
  });

  it("HDF5 that unpacks to far more than its length is rejected, in all and in one chunk", async () => {
    const rows = 5_600_000;
    const { h5 } = await made.kerasFile({ compressed: true, rows, weights: new Float32Array(rows * 3).fill(1) });
    expect(h5.length).toBeLessThan(1 << 20);
    await expectCode("REFUSED", open("a.h5", h5));
  });

  it("JSON that nests without end is rejected", async () => {
    const nested = `{"a":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`;
    await expectCode("CORRUPT", open("model.json", Buffer.from(nested)));
    const text = Buffer.from(JSON.stringify({ weightsManifest: [], note: "[{".repeat(5000), path: 'a"[\\' }));
    expect((await open("model.json", text)).tensors.size).toBe(0);
  });
});
