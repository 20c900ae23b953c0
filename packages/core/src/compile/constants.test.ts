// Tensors that a compiled function makes of host data: each call has the same, and checks compare them.
import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import {
  arange,
  compile,
  eye,
  full,
  Generator,
  init,
  keep,
  linspace,
  ones,
  parameter,
  rand,
  type Tensor,
  tensor,
  tensorFromBytes,
  zeros,
} from "../index";

await init("js"); // loads the passes

const device = new FakeDevice();
const numbers = (x: Tensor) => [...x.dataSync()];

const made: Record<string, (i: number) => Tensor> = {
  tensor: (i) => tensor([i, 2], { device }),
  "a typed array": (i) => tensor(Float32Array.of(i, 2), { device }),
  tensorFromBytes: (i) => tensorFromBytes(new Uint8Array(Float32Array.of(i, 2).buffer), [2], { device }),
  full: (i) => full([2], i, { device }),
  arange: (i) => arange(i, i + 2, { device, dtype: "f32" }),
  linspace: (i) => linspace(i, i + 1, 2, { device }),
  "a number": (i) => tensor(i, { device }),
  "a row of eye": (i) =>
    eye(2, { device })
      .slice(i % 2, (i % 2) + 1)
      .reshape([2]),
  "ones and zeros": (i) => (i % 2 === 0 ? ones([2], { device }) : zeros([2], { device })),
};

describe("made inside", () => {
  it.each(Object.entries(made))("%s is the same in each call", (_, make) => {
    for (const check of ["never", "spaced"] as const) {
      const f = compile((x: Tensor) => x.mul(make(1)), { check });
      for (let i = 0; i < 9; i++) {
        const x = tensor([i, i + 1], { device });
        expect(numbers(f(x))).toEqual(numbers(x.mul(make(1))));
      }
    }
  });

  it.each(Object.entries(made))("%s of other numbers is found, though each batch is a new tensor", (_, make) => {
    let i = 0;
    const f = compile((x: Tensor) => x.mul(make(i++)));
    expectCode("CHANGED", () => {
      for (let call = 0; call < 4; call++) f(tensor([1, 2], { device }));
    });
  });

  it("is written once, not in each replay", () => {
    const fresh = new FakeDevice();
    const f = compile((x: Tensor) => x.add(tensor([1, 2], { device: fresh })), { check: "never" });
    const x = tensor([1, 1], { device: fresh });
    f(x);
    const write = vi.spyOn(fresh.backend, "write");
    for (let i = 0; i < 3; i++) expect(numbers(f(x))).toEqual([2, 3]);
    expect(write).not.toHaveBeenCalled();
  });

  it("is new in each call where the function returns or overwrites it", () => {
    const f = compile(
      (x: Tensor) => {
        const sum = tensor([1, 2], { device });
        const before = sum.mul(10);
        sum.set(sum.add(x));
        return [sum, before, tensor([5], { device })];
      },
      { check: "never" },
    );
    const calls = [1, 2, 3, 4].map((i) => f(tensor([i, i], { device })));
    expect(calls.map((list) => list.map(numbers))).toEqual([1, 2, 3, 4].map((i) => [[1 + i, 2 + i], [10, 20], [5]]));
    for (const list of calls) list[2]!.set([0]); // is the caller's
    expect(numbers(f(tensor([1, 1], { device }))[2]!)).toEqual([5]);
  });

  it("may be kept once, in the first call", () => {
    let mask: Tensor | undefined;
    const f = compile((x: Tensor) => {
      mask ??= keep(tensor([1, 0], { device }));
      return x.mul(mask);
    });
    for (let i = 1; i < 6; i++) expect(numbers(f(tensor([i, i], { device })))).toEqual([i, 0]);
  });

  it("is the caller's typed array of the first call, also after he has overwritten it", () => {
    const list = Float32Array.of(1, 2);
    const f = compile((x: Tensor) => x.mul(tensor(list, { device })), { check: "never" });
    const x = tensor([1, 1], { device });
    f(x);
    list.fill(7);
    expect(numbers(f(x))).toEqual([1, 2]);
  });
});

it("host data goes to its place between the launches that use the old and the new numbers", () => {
  const w = parameter([1, 2], { device }).detach();
  const f = compile(
    (x: Tensor) => {
      const before = w.mul(x);
      w.set([3, 4]);
      const between = w.mul(x);
      w.set(w.add(1));
      x.set([9, 9]);
      return [before, between, w.mul(x)];
    },
    { check: "never" },
  );
  for (let i = 0; i < 5; i++) {
    w.set([1, 2]);
    const x = tensor([i, 1], { device });
    const version = x.storage.version;
    expect(f(x).map(numbers)).toEqual([
      [i, 2],
      [3 * i, 4],
      [36, 45],
    ]);
    expect(numbers(x)).toEqual([9, 9]);
    expect(x.storage.version).toBeGreaterThan(version);
  }
});

it("random numbers beside constants follow their generator", () => {
  const draw = (isCompiled: boolean) => {
    const generator = new Generator(3);
    const body = () => rand([2], { generator, device }).mul(tensor([1, 2], { device }));
    const f = isCompiled ? compile(body) : body;
    return Array.from({ length: 6 }, () => numbers(f()));
  };
  expect(draw(true)).toEqual(draw(false));
});

it("the host's own array is no memory of a compiled function", () => {
  const device = new FakeDevice();
  if (device.backend.wrap === undefined) device.backend.wrap = () => undefined as never;
  expectCode("UNSUPPORTED", () => compile(() => parameter(new Float32Array(2), { device }))());
});
