import { Generator, type Tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import type { Nonlinearity } from "./gain";
import * as init from "./initializers";

const weight = () => zeros([40, 20, 5, 5]); // fans: in 500, out 1000
const generator = () => new Generator(5);

async function spread(tensor: Tensor): Promise<{ mean: number; deviation: number; largest: number }> {
  const values = Array.from(await tensor.data());
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return { mean, deviation: Math.sqrt(variance), largest };
}

describe("initialisers", () => {
  const uniforms: [string, Tensor, number][] = [
    ["uniform", init.uniform(weight(), -0.5, 0.5, { generator: generator() }), 0.5],
    ["kaimingUniform", init.kaimingUniform(weight(), { generator: generator() }), Math.sqrt(6 / 500)],
    [
      "kaimingUniform, fan out",
      init.kaimingUniform(weight(), { generator: generator(), fan: "out" }),
      Math.sqrt(6 / 1000),
    ],
    ["xavierUniform", init.xavierUniform(weight(), { generator: generator(), gain: 2 }), 2 * Math.sqrt(6 / 1500)],
  ];
  it.each(uniforms)("%s fills [-b, b]", async (_, tensor, bound) => {
    const { mean, deviation, largest } = await spread(tensor);
    expect(largest).toBeLessThanOrEqual(Math.fround(bound));
    expect(largest / bound).toBeGreaterThan(0.999);
    expect(mean / bound).toBeCloseTo(0, 1);
    expect(deviation / (bound / Math.sqrt(3))).toBeCloseTo(1, 1);
  });

  const normals: [string, Tensor, number][] = [
    ["normal", init.normal(weight(), 0, 0.02, { generator: generator() }), 0.02],
    [
      "kaimingNormal",
      init.kaimingNormal(weight(), { generator: generator(), nonlinearity: "tanh" }),
      5 / 3 / Math.sqrt(500),
    ],
    [
      "kaimingNormal, fan out",
      init.kaimingNormal(weight(), { generator: generator(), fan: "out" }),
      Math.sqrt(2 / 1000),
    ],
    [
      "kaimingNormal, negativeSlope",
      init.kaimingNormal(weight(), { generator: generator(), nonlinearity: "leakyRelu", negativeSlope: 1 }),
      Math.sqrt(1 / 500),
    ],
    ["xavierNormal, gain", init.xavierNormal(weight(), { generator: generator(), gain: 3 }), 3 * Math.sqrt(2 / 1500)],
    ["xavierNormal", init.xavierNormal(weight(), { generator: generator() }), Math.sqrt(2 / 1500)],
  ];
  it.each(normals)("%s has its deviation", async (_, tensor, expected) => {
    const { mean, deviation } = await spread(tensor);
    expect(deviation / expected).toBeCloseTo(1, 1);
    expect(mean / expected).toBeCloseTo(0, 1);
  });

  it("truncNormal stays inside", async () => {
    const { largest, deviation } = await spread(init.truncNormal(weight(), { generator: generator() }));
    expect(largest).toBeLessThanOrEqual(2);
    expect(deviation).toBeCloseTo(0.88, 1); // of a normal cut at two deviations: 0.8796
  });

  it("zeros, ones and constant are what they say", async () => {
    expect([...(await init.ones(zeros([2])).data())]).toEqual([1, 1]);
    expect([...(await init.zeros(init.constant(zeros([2]), 3)).data())]).toEqual([0, 0]);
  });

  const gains: [Nonlinearity, number][] = [
    ["linear", 1],
    ["sigmoid", 1],
    ["tanh", 5 / 3],
    ["relu", Math.SQRT2],
    ["leakyRelu", 1],
    ["selu", 0.75],
  ];
  it.each(gains)("%s has PyTorch's gain", async (nonlinearity, gain) => {
    const options = { nonlinearity, negativeSlope: 1 };
    const scaled = await init.kaimingUniform(weight(), { ...options, generator: generator() }).data();
    const plain = await init.uniform(weight(), -1, 1, { generator: generator() }).data();
    expect(scaled[0]! / plain[0]!).toBeCloseTo(gain * Math.sqrt(3 / 500), 6);
  });

  const rejections: ["BAD_ARGUMENT" | "BAD_SHAPE", string, () => unknown][] = [
    ["BAD_SHAPE", "the fan of a vector", () => init.kaimingUniform(zeros([3]))],
    ["BAD_SHAPE", "the fan of a vector, Xavier", () => init.xavierNormal(zeros([3]))],
    ["BAD_ARGUMENT", "low above high", () => init.uniform(zeros([3]), 1, 0)],
    ["BAD_ARGUMENT", "NaN bounds", () => init.uniform(zeros([3]), Number.NaN, 0)],
    ["BAD_ARGUMENT", "a negative deviation", () => init.normal(zeros([3]), 0, -1)],
    ["BAD_ARGUMENT", "a range far from the mean", () => init.truncNormal(zeros([3]), { a: 5, b: 6 })],
    ["BAD_ARGUMENT", "an unknown nonlinearity", () => init.kaimingNormal(weight(), { nonlinearity: "gelu" as "relu" })],
  ];
  it.each(rejections)("reject with %s %s", (code, _, body) => expectCode(code, body));
});

it("a normal much wider than its bounds is drawn as fast, nearly evenly between them", async () => {
  const options = { generator: new Generator(1) };
  const values = Array.from(await init.truncNormal(zeros([4000]), { std: 2 ** 40, ...options }).data());
  const mean = values.reduce((a, b) => a + b, 0) / 4000;
  expect(mean).toBeCloseTo(0, 0);
  expect(values.reduce((a, b) => a + b * b, 0) / 4000).toBeCloseTo(4 / 3, 1);
  expect(values.every((value) => value >= -2 && value <= 2)).toBe(true);
});
