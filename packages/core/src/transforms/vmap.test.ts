/** `vmap` of each op is the loop over samples, word by word. */
import { type CallInput, seededArray } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { opSweep } from "../../testing/sweep";
import { FUNCTIONS } from "../../testing/valid-arguments";
import { tensor } from "../create";
import * as core from "../index";
import { stack } from "../ops";
import { viewAsComplex, viewAsReal } from "../ops/complex";
import { noGrad } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { vmap } from "./vmap";

const SAMPLES = 3;

/** The numbers of a sample: the drawn ones, each at another place. */
function madeOf({ values, shape, dtype }: CallInput, by: number): Tensor {
  const list = Array.from(values);
  const moved = list.map((_, i) => list[(i + by) % list.length]!);
  return tensor(moved, { shape, dtype });
}
/** What overwrites elements, and masks that say how many elements there are. */
const mayRefuse = (name: string, inputs: readonly CallInput[]) =>
  name.includes("assign") || (/: (at|indexPut)/.test(name) && inputs.some(({ dtype }) => dtype === "bool"));
const listed = (result: Tensor | readonly Tensor[]) => (Array.isArray(result) ? result : [result]) as readonly Tensor[];

describe.each(Object.entries(opSweep()))("%s", (_, calls) => {
  it("gives each sample what it gives alone", () => {
    for (const { name, inputs, run } of calls) {
      const samplesOf = (isMoved: boolean) =>
        Array.from({ length: SAMPLES }, (_, i) => inputs.map((input) => madeOf(input, isMoved ? i : 0)));
      noGrad(() => {
        let samples = samplesOf(true);
        let alone: (readonly Tensor[])[];
        try {
          alone = samples.map((given) => listed(run(...given)));
        } catch {
          samples = samplesOf(false);
          try {
            alone = samples.map((given) => listed(run(...given)));
          } catch {
            return; // a call that PyTorch rejects, too
          }
        }
        const whole = inputs.map((_, i) => stack(samples.map((given) => given[i]!)));
        let together: readonly Tensor[];
        try {
          together = listed(vmap((...given: readonly Tensor[]) => run(...given))(...whole));
        } catch (error) {
          if (!mayRefuse(name, inputs)) throw error;
          expect(error, name).toMatchObject({ code: "UNSUPPORTED" });
          return;
        }
        for (const [i, result] of together.entries()) {
          const expected = stack(alone.map((results) => results[i]!));
          expect(result.shape, name).toEqual(expected.shape);
          expect(result.dtype, name).toBe(expected.dtype);
          expect(Buffer.compare(Buffer.from(result.bytesSync()), Buffer.from(expected.bytesSync())), name).toBe(0);
        }
      });
    }
  });
});

/** What copies, moves or keeps what it is given rather than computing, or has other tensors beside. */
const REFUSED = new Set("rowSparse span grad".split(" "));

/** Of two axes, c64 among them. */
function stacked(x: Tensor): Tensor {
  if (x.dtype !== "c64") return stack([x, x]);
  return viewAsComplex(stack([viewAsReal(x), viewAsReal(x)]));
}

it("takes each function of tensors", () => {
  const refused = Object.entries(FUNCTIONS).filter(([name, make]) => {
    const f = (core as unknown as Record<string, (...given: unknown[]) => Tensor>)[name];
    const given = make();
    const places = given.flatMap((each, place) => (each instanceof Tensor ? [place] : []));
    if (f === undefined || places.length === 0 || REFUSED.has(name)) return false;
    const alone: unknown = f(...given);
    const isOne = alone instanceof Tensor;
    if (!(isOne || Object.values(alone ?? {}).some((each) => each instanceof Tensor))) return false;
    const run = (...samples: Tensor[]) => f(...given.map((each, i) => samples[places.indexOf(i)] ?? each));
    try {
      const result = vmap(run)(...places.map((place) => stacked(given[place] as Tensor)));
      return isOne && JSON.stringify(result.shape) !== JSON.stringify([2, ...alone.shape]);
    } catch {
      return true;
    }
  });
  expect(refused.map(([name]) => name)).toEqual([]);
});

it.each([1, 2])("takes gradients of convolutions, stride %i", (stride) => {
  const drawn = (seed: number, ...shape: number[]) =>
    tensor(
      seededArray(
        "f32",
        shape.reduce((a, b) => a * b),
        { seed },
      ),
      { shape },
    );
  const [xs, ws] = [drawn(1, 4, 2, 8, 6, 6), drawn(2, 4, 3, 8, 3, 3)];
  const of = (x: Tensor, w: Tensor) => {
    const y = core.conv2d(x, w, null, { padding: 1, stride });
    return core.grad(y.mul(y).sum(), [x, w]);
  };
  const leaf = (x: Tensor) => core.parameter(x.dataSync(), { shape: x.shape });
  const whole = vmap(of)(leaf(xs), leaf(ws)) as unknown as Tensor[];
  for (let i = 0; i < 4; i++) {
    for (const [k, one] of of(leaf(xs.select(0, i)), leaf(ws.select(0, i))).entries())
      expect([...whole[k]!.select(0, i).dataSync()]).toEqual([...one.dataSync()]);
  }
  const image = leaf(drawn(3, 1, 8, 4, 4));
  const jacobian = core.jacobian(
    (x: Tensor) => core.conv2d(x, ws.select(0, 0), null, { padding: 1, stride }).reshape([-1]),
    image,
  );
  const row = core.grad(
    core.conv2d(image, ws.select(0, 0), null, { padding: 1, stride }).reshape([-1]).slice(5, 6).sum(),
    [image],
  )[0];
  expect([...jacobian.select(0, 5).dataSync()]).toEqual([...row.dataSync()]);
});
