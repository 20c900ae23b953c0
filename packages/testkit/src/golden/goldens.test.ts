import { describe, expect, it } from "vitest";
import { readSafetensors } from "./safetensors";
import { float64Runs, kerasTable, semanticsGoldens } from "./semantics";
import { torchGoldens } from "./torch";
import { trainingGolden } from "./training";

const SHARED = ["NAdam", "Adam", "AdamW", "SGD", "RMSprop", "Adamax", "RAdam"];
/** Those whose package has goldens of its own. */
const others = new Set(torchGoldens().flatMap(({ optimizer }) => (SHARED.includes(optimizer) ? [] : [optimizer])));

describe("torchGoldens", () => {
  it("has 32 cases of seven optimizers, nine of them with an absent gradient", () => {
    const cases = SHARED.flatMap(torchGoldens);
    expect(cases.map(({ optimizer }) => optimizer).filter((name) => name === "NAdam")).toHaveLength(8);
    expect(cases).toHaveLength(32);
    expect(cases.filter(({ gradients }) => gradients.includes(null))).toHaveLength(9);
    for (const { param0, gradients, exact, torch } of cases) {
      expect(gradients).toHaveLength(25);
      expect(exact.arrays.get("param")).toHaveLength(param0.length);
      for (const array of torch.arrays.values()) expect(array).toHaveLength(param0.length);
    }
  });

  it.each([...others])("has cases of %s, one of them with absent gradients", (name) => {
    const cases = torchGoldens(name);
    expect(cases.length).toBeGreaterThan(2);
    expect(cases.filter(({ gradients }) => gradients.includes(null))).toHaveLength(1);
  });

  it("keeps the exact recipe within 5e-7 of PyTorch", () => {
    for (const { exact, torch } of torchGoldens()) {
      exact.arrays.get("param")!.forEach((x, i) => {
        expect(Math.abs(x - torch.arrays.get("param")![i]!)).toBeLessThan(5e-7);
      });
    }
  });
});

describe("semanticsGoldens", () => {
  it("has every case, and names options as we do", () => {
    const shared = semanticsGoldens().filter(({ config }) => !others.has(String(config.opt)));
    expect(shared).toHaveLength(104);
    expect(float64Runs("NAdam")).toHaveLength(18);
    expect(float64Runs("Adam")).toHaveLength(9);
    expect(float64Runs("AdamW")).toHaveLength(4);
    expect(float64Runs("SGD")).toHaveLength(3);
    expect(kerasTable("keras_nadam_golden", "NAdam").options).toEqual({ lr: 0.5, betas: [0.5, 0.67], eps: 1e-5 });
  });
});

describe("trainingGolden", () => {
  it("reads both models", () => {
    const mnist = trainingGolden("mnist-mlp");
    expect(mnist.parameters.get("0.weight")!.shape).toEqual([32, 784]);
    expect(mnist.losses.AdamW).toHaveLength(100);
    const gpt = trainingGolden("tiny-gpt");
    expect(gpt.parameters.size).toBe(29);
    expect(gpt.tokens[0]).toHaveLength(8);
    expect(gpt.clipGradNorm).toBe(1);
    expect(gpt.losses.NAdam).toHaveLength(gpt.tokens.length);
  });

  it("rejects a file of another dtype or size", () => {
    const file = (header: object) => {
      const text = new TextEncoder().encode(JSON.stringify(header));
      const bytes = new Uint8Array(8 + text.length + 4);
      new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
      bytes.set(text, 8);
      return bytes;
    };
    expect(() => readSafetensors(file({ x: { dtype: "F16", shape: [2], data_offsets: [0, 4] } }))).toThrow("F32");
    expect(() => readSafetensors(file({ x: { dtype: "F32", shape: [2], data_offsets: [0, 4] } }))).toThrow("2 numbers");
    expect([...readSafetensors(file({ x: { dtype: "F32", shape: [], data_offsets: [0, 4] } })).keys()]).toEqual(["x"]);
  });
});
