// Scales that keep an extent, where PyTorch's numbers are not those of the formula. Its answers are from 2.13.
import { parameter, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { gridSample } from "./grid-sample";
import { type InterpolateOptions, interpolate } from "./interpolate";

const row = () => tensor([[[1, 2, 3]]]);
const upTo = (count: number, ...shape: number[]) => tensor(Array.from({ length: count }, (_, i) => i)).reshape(shape);
const near = { absolute: 1e-6, relative: 1e-6 };

describe("an extent that stays", () => {
  it.each<[InterpolateOptions, number[]]>([
    [{ scaleFactor: 1.25, mode: "linear" }, [1, 2, 3]],
    [{ scaleFactor: 1.3, mode: "linear" }, [1, 2, 3]],
    [{ scaleFactor: 1.25, mode: "linear", alignCorners: true }, [1, 2, 3]],
    [{ scaleFactor: 1.25, mode: "linear", recomputeScaleFactor: true }, [1, 2, 3]],
    [{ size: 3, mode: "linear" }, [1, 2, 3]],
    [{ scaleFactor: 1, mode: "nearest" }, [1, 2, 3]],
    // By the scale as it was given, in sequences and volumes.
    [{ scaleFactor: 1.25, mode: "nearest" }, [1, 1, 2]],
    [{ scaleFactor: 1.25, mode: "nearest", recomputeScaleFactor: true }, [1, 2, 3]],
  ])("of a row: %j", (options, expected) => {
    expect(interpolate(row(), options).tolist()).toEqual([[expected]]);
  });

  it("has the gradient of a copy", () => {
    const x = parameter([[[1, 2, 3]]]);
    interpolate(x, { scaleFactor: 1.25, mode: "linear" })
      .mul(tensor([[[5, 6, 7]]]))
      .sum()
      .backward();
    expect(x.grad!.tolist()).toEqual([[[5, 6, 7]]]);
  });

  it("is left alone beside an axis that grows", () => {
    const y = interpolate(upTo(12, 1, 1, 3, 4), { scaleFactor: [1.25, 1.25], mode: "bilinear" });
    const first = [0, 0.7, 1.5, 2.3, 3];
    const expected = [0, 4, 8].flatMap((start) => first.map((x) => start + x));
    expect(y.dataSync()).toAgreeWith(new Float32Array(expected), near);
    const z = interpolate(upTo(12, 1, 1, 3, 2, 2), { scaleFactor: [1.25, 2, 1.4], mode: "trilinear" });
    const plane = [0, 1, 0.5, 1.5, 1.5, 2.5, 2, 3];
    expect([...z.dataSync()]).toEqual([0, 4, 8].flatMap((start) => plane.map((x) => start + x)));
  });

  it("of an image has its nearest rows, whatever the scale says", () => {
    const y = interpolate(upTo(9, 1, 1, 3, 3), { scaleFactor: [1.25, 1.4] });
    expect(y.tolist()).toEqual([
      [
        [
          [0, 0, 1, 2],
          [3, 3, 4, 5],
          [6, 6, 7, 8],
        ],
      ],
    ]);
    const volume = interpolate(upTo(3, 1, 1, 3, 1, 1), { scaleFactor: [1.25, 1, 1] });
    expect([...volume.dataSync()]).toEqual([0, 0, 1]);
  });

  it("of twice the extent is that of scale 2 in images alone", () => {
    const image = interpolate(upTo(4, 1, 1, 4, 1), { scaleFactor: [2.1, 1] });
    expect([...image.dataSync()]).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    expect([...interpolate(upTo(4, 1, 1, 4), { scaleFactor: 2.1 }).dataSync()]).toEqual([0, 0, 0, 1, 1, 2, 2, 3]);
  });
});

it("takes an empty batch", () => {
  expect(interpolate(zeros([0, 2, 3]), { scaleFactor: 2 }).shape).toEqual([0, 2, 6]);
  expectCode("BAD_SHAPE", () => interpolate(zeros([2, 0, 3]), { scaleFactor: 2 }));
});

it("recomputeScaleFactor goes with a scale", () => {
  const y = interpolate(row(), { scaleFactor: 0.9, mode: "linear", recomputeScaleFactor: true });
  expect(y.tolist()).toEqual([[[1.25, 2.75]]]);
  expectCode("BAD_ARGUMENT", () => interpolate(row(), { size: 2, recomputeScaleFactor: true }));
});

it.each([true, false])("gridSample reflects in an extent of 1 (alignCorners: %s)", (alignCorners) => {
  const x = parameter([3, 3], { shape: [1, 1, 1, 2] });
  const grid = tensor([-2.5, -1, 0.25, 3.75].flatMap((y) => [0, y])).reshape([1, 1, 4, 2]);
  const y = gridSample(x, grid, { paddingMode: "reflection", alignCorners });
  expect([...y.dataSync()]).toEqual([3, 3, 3, 3]);
  y.sum().backward();
  expect(x.grad!.sum().tolist()).toBe(4);
});
