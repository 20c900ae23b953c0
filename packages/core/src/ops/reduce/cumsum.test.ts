import { describe, expect, it } from "vitest";
import { cumsum, noGrad, type Shape, tensor } from "../../index";

describe("running sums have memory of their own", () => {
  it.each<[Shape, number]>([
    [[1], 0],
    [[1, 3], 0],
    [[3, 1], 1],
    [[3], 0],
  ])("of %j along %d", (shape, axis) => {
    const values = Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => i + 1);
    const x = tensor(values, { shape, requiresGrad: true });
    const doubled = x.mul(2);
    const sums = noGrad(() => cumsum(doubled, axis));
    noGrad(() => sums.set(sums.mul(0)));
    expect(doubled.reshape([values.length]).tolist()).toEqual(values.map((value) => 2 * value));
    doubled.sum().backward();
  });
});
