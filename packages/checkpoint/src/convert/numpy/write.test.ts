import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { npzFile } from "../../../testing/files/numpy";
import { scratchFolder } from "../../../testing/fixtures";
import { sourceOf } from "../../../testing/source-of";
import { convertCheckpoint } from "../convert";
import { npyHeader, writeNpz } from "./write";

const scratch = scratchFolder();
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

describe("npz", () => {
  it.each(["stored", "deflated"] as const)("comes out as NumPy wrote it, from members %s", async (name) => {
    const out = join(scratch.path, "out.npz");
    const seen: number[] = [];
    const progress = (done: { bytes: number; total: number }) => void seen.push(done.bytes / done.total);
    const result = await convertCheckpoint(npzFile(name), out, { to: "npz", progress });
    expect([result.tensors, result.from, seen.at(-1)]).toEqual([3, "NumPy", 1]);
    expect(readFileSync(out).equals(readFileSync(npzFile("stored")))).toBe(true);
  });

  it("begins data at multiples of 64, where the first dimension has room to grow", () => {
    expect(text(npyHeader([12, 3], "<f4"))).toBe(
      `\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (12, 3), }${" ".repeat(57)}\n`,
    );
    for (const shape of [[], [1], [1e15, 2, 3], Array.from({ length: 30 }, () => 1)])
      expect(npyHeader(shape, "|b1").length % 64).toBe(0);
  });

  it("has no bfloat16", async () => {
    const source = sourceOf({ w: { dtype: "BF16", shape: [1], data: new Uint8Array(2) } });
    expect(await expectCode("UNSUPPORTED", writeNpz(source, join(scratch.path, "x.npz")))).toMatch(/--dtype f32/);
  });
});
