import { compile, Generator, ones, parameter, type Tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Dropout, Dropout1d, Dropout2d } from "./dropout";

describe("Dropout", () => {
  const masked = async (seed: number, p = 0.25) =>
    new Dropout(p, { generator: new Generator(seed) }).forward(ones([10_000])).data();

  it("drops the share p and keeps the expectation", async () => {
    const values = await masked(1);
    const kept = Math.fround(1 / 0.75);
    expect(new Set(values)).toEqual(new Set([0, kept]));
    expect(values.filter((value) => value === 0).length / values.length).toBeCloseTo(0.25, 2);
  });

  it("draws from its generator", async () => {
    expect(await masked(1)).toEqual(await masked(1));
    expect(await masked(1)).not.toEqual(await masked(2));
  });

  it("passes the gradient where it passed the value", async () => {
    const x = parameter(new Float32Array(100).fill(2));
    const y = new Dropout(0.5, { generator: new Generator(1) }).forward(x);
    y.sum().backward();
    expect([...(await x.grad!.data())]).toEqual(Array.from(await y.data(), (value) => value / 2));
  });

  it("passes everything in eval, and nothing with p = 1", async () => {
    const x = ones([8]);
    const passed = new Dropout(0.5).eval().forward(x);
    expect([...(await passed.data())]).toEqual(Array(8).fill(1));
    passed.dispose(); // a view: x stays
    expect([...(await new Dropout(1).forward(x).data())]).toEqual(Array(8).fill(0));
  });

  it("keeps the dtype", () => expect(new Dropout().forward(ones([3], { dtype: "bf16" })).dtype).toBe("bf16"));

  it.each([-0.1, 1.1, Number.NaN])("rejects p = %s", (p) => expectCode("BAD_ARGUMENT", () => new Dropout(p)));

  it("compiled, draws in each call what it draws eagerly, and follows train() and eval()", () => {
    const [dropout, plain] = [1, 1].map((seed) => new Dropout(0.5, { generator: new Generator(seed) })) as [
      Dropout,
      Dropout,
    ];
    const compiled = compile((x: Tensor) => dropout.forward(x), { check: "never" });
    for (const isTraining of [true, true, true, false, false, true]) {
      for (const each of [dropout, plain]) each.train(isTraining);
      expect([...compiled(ones([8])).dataSync()]).toEqual([...plain.forward(ones([8])).dataSync()]);
    }
  });
});

describe("dropout of channels", () => {
  const counts = async (values: Promise<ArrayLike<number>>, size: number) => {
    const all = Array.from(await values);
    return Array.from({ length: all.length / size }, (_, i) => new Set(all.slice(i * size, (i + 1) * size)));
  };

  it.each([
    ["Dropout1d", Dropout1d, [100, 40, 3]],
    ["Dropout1d without a batch", Dropout1d, [4000, 3]],
    ["Dropout2d", Dropout2d, [100, 40, 2, 3]],
    ["Dropout2d without a batch", Dropout2d, [4000, 2, 3]],
  ] as const)("%s zeroes each channel as a whole", async (_, Layer, shape) => {
    const layer = new Layer(0.25, { generator: new Generator(3) });
    const size = shape.at(-1)! * (Layer === Dropout2d ? 2 : 1);
    const channels = await counts(layer.forward(ones(shape)).data(), size);
    expect(channels.every((values) => values.size === 1)).toBe(true);
    const zeros = channels.filter((values) => values.has(0)).length;
    expect(zeros / channels.length).toBeCloseTo(0.25, 1);
    expect(new Set(channels.flatMap((values) => [...values]))).toEqual(new Set([0, Math.fround(1 / 0.75)]));
  });

  it("checks the number of axes, also in eval", () => {
    expectCode("BAD_SHAPE", () => new Dropout2d().forward(ones([3, 4])));
    expectCode("BAD_SHAPE", () => new Dropout1d().eval().forward(ones([1, 2, 3, 4])));
  });
});
