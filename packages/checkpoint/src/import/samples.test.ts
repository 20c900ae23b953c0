import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { nodeFileSystem } from "../file-system";
import type { SourceTensor, TensorSource } from "../source";
import { openForeign } from "./importers";

// Checkpoints that other systems wrote, and what those systems read from them. They are no part of the project.
const SAMPLES = join(fileURLToPath(new URL("../../../../..", import.meta.url)), "shared/samples");
const present = existsSync(join(SAMPLES, "expected.json"));

interface Expected {
  tensors: Record<string, { shape: number[]; dtype: string; bytes: number; sha256: string }>;
  values: Record<string, unknown>;
}

const expected: Record<string, Expected> = present
  ? JSON.parse(readFileSync(join(SAMPLES, "expected.json"), "utf8"))
  : {};

const DTYPES: Record<string, string> = {
  float32: "F32",
  Float32: "F32",
  Float64: "F64",
  bfloat16: "BF16",
  float8_e4m3fn: "F8_E4M3",
  uint16: "U16",
  int64: "I64",
  uint8: "U8",
  int8: "I8",
  Int32: "I32",
  bool: "BOOL",
};

/** The whole tensor, put together from its boxes. */
async function assemble(tensor: SourceTensor): Promise<Uint8Array> {
  const width =
    tensor.boxes[0]!.byteLength /
    Math.max(
      1,
      tensor.boxes[0]!.size.reduce((a, b) => a * b, 1),
    );
  const whole = new Uint8Array(tensor.shape.reduce((a, b) => a * b, width));
  for (const box of tensor.boxes) {
    const bytes = new Uint8Array(box.byteLength);
    await box.read(bytes, 0);
    const row = (box.size.at(-1) ?? 1) * width;
    for (let at = 0; at < bytes.length; at += row) {
      let rest = at / row;
      let place = 0;
      let step = tensor.shape.at(-1) ?? 1;
      for (let d = tensor.shape.length - 2; d >= 0; d--) {
        place += ((rest % box.size[d]!) + box.offset[d]!) * step;
        rest = Math.floor(rest / box.size[d]!);
        step *= tensor.shape[d]!;
      }
      whole.set(bytes.subarray(at, at + row), (place + (box.offset.at(-1) ?? 0)) * width);
    }
  }
  return whole;
}

async function opened<T>(path: string, body: (source: TensorSource) => Promise<T>): Promise<T> {
  const source = await openForeign(path, nodeFileSystem);
  try {
    return await body(source);
  } finally {
    await source.close();
  }
}

describe.skipIf(!present)(`samples of other systems${present ? "" : " (../shared/samples is not here)"}`, () => {
  it.each(Object.keys(expected))("reads %s to the values that its own system read", async (name) => {
    const { tensors, values } = expected[name]!;
    await opened(join(SAMPLES, name), async (source) => {
      // torch keeps NumPy arrays as objects: for us they are tensors like all others.
      const arrays = Object.keys(values).filter((key) => /^array\(/.test(String(values[key])));
      expect([...source.tensors.keys()].sort()).toEqual([...Object.keys(tensors), ...arrays].sort());
      for (const [key, { shape, dtype, bytes, sha256 }] of Object.entries(tensors)) {
        const tensor = source.tensors.get(key)!;
        // MindSpore writes dims [0] for scalars.
        expect([key, tensor.shape]).toEqual([key, `${shape}` === "0" && bytes > 0 ? [] : shape]);
        expect([key, tensor.dtype]).toEqual([key, DTYPES[dtype]]);
        const whole = await assemble(tensor);
        expect([key, whole.length]).toEqual([key, bytes]);
        expect([key, createHash("sha256").update(whole).digest("hex")]).toEqual([key, sha256]);
      }
      for (const key of arrays) {
        const whole = await assemble(source.tensors.get(key)!);
        expect(`array([${new BigInt64Array(whole.buffer).join(", ")}])`).toBe(values[key]);
      }
      const plain = Object.entries(values).filter(([key]) => !arrays.includes(key));
      expect(source.values).toMatchObject(Object.fromEntries(plain));
    });
  });
});
