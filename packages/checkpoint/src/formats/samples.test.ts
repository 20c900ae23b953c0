import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readTensor } from "../../testing/read-tensor";
import type { TensorSource } from "../format/source";
import { underOurNames } from "../naming/names";
import { localFileSystem } from "../platform/local";
import { memorySource } from "./bytes/source";
import { mindsporePart, readMindsporeStrategy } from "./mindspore/strategy";
import { openForeign } from "./registry";

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

function digest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function opened<T>(path: string, body: (source: TensorSource) => Promise<T>): Promise<T> {
  const source = await openForeign(path, localFileSystem);
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
        const whole = await readTensor(source, key);
        expect([key, whole.length]).toEqual([key, bytes]);
        expect([key, digest(whole)]).toEqual([key, sha256]);
      }
      for (const key of arrays) {
        const whole = await readTensor(source, key);
        expect(`array([${new BigInt64Array(whole.buffer).join(", ")}])`).toBe(values[key]);
      }
      // Whose arrays a safetensors file holds it says of itself: that is no value of the run.
      const ofFile = name.endsWith(".safetensors") ? ["format"] : [];
      const plain = Object.entries(values).filter(([key]) => !arrays.includes(key) && !ofFile.includes(key));
      expect(source.values).toMatchObject(Object.fromEntries(plain));
      for (const key of ofFile) expect(source.values).not.toHaveProperty(key);
    });
  });

  it("joins the safetensors shards of four ranks to what DCP holds", async () => {
    const { tensors } = expected["torch-dcp-4ranks"]!;
    await opened(join(SAMPLES, "torch-hf-4ranks"), async (source) => {
      expect(source.tensors.size).toBe(6);
      for (const name of source.tensors.keys()) {
        expect([name, digest(await readTensor(source, name))]).toEqual([name, tensors[`model.${name}`]!.sha256]);
      }
    });
  });

  it("reads TF.js weights in the order in which they lie", async () => {
    await opened(join(SAMPLES, "tfjs/model.json"), async (source) => {
      const all = await Promise.all([...source.tensors.keys()].map((name) => readTensor(source, name)));
      expect(Buffer.concat(all).equals(readFileSync(join(SAMPLES, "tfjs/weights.bin")))).toBe(true);
      const ours = await underOurNames(source);
      expect(ours.tensors.get("dense_Dense2/bias.exp_avg_sq")).toMatchObject({
        follows: "dense_Dense2/bias",
        shape: [2],
      });
    });
  });

  it("reads a strategy of 363 layouts on two devices", async () => {
    const file = "mindspore/goldenstick_llama2-13b-2p_ckpt_strategy_rank_0.ckpt";
    const layouts = await readMindsporeStrategy(memorySource(file, readFileSync(join(SAMPLES, file))));
    expect(layouts.size).toBe(363);
    const layout = layouts.get("model.layers.28.feed_forward.w2.weight")!;
    expect(mindsporePart(layout, 1, 2)).toEqual({ parts: [1, 2], index: [0, 1] });
  });

  it("finds the parameters of Keras's 36 optimizer variables", async () => {
    await opened(join(SAMPLES, "keras/potablys_best_model.keras"), async (source) => {
      const ours = await underOurNames(source);
      expect([...ours.tensors.keys()].filter((name) => /^optimizer/.test(name))).toEqual([
        "optimizer/vars/0",
        "optimizer/vars/1",
      ]);
      expect([...ours.tensors.values()].filter(({ role }) => role === "state")).toHaveLength(36 + 18);
    });
  });
});
