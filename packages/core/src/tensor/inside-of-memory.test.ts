// A tensor in the middle of another's memory is read and written as one with memory of its own.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inspectSymbol } from "../host/inspect-symbol";
import {
  type DType,
  hostBytes,
  maskedSelect,
  noGrad,
  nonzero,
  ones,
  span,
  type Tensor,
  tensor,
  unique,
} from "../index";
import { readInto } from "./read";

const DTYPES = ["f64", "f32", "f16", "bf16", "i32", "u8", "bool"] as const;
const VALUES = [1, 0, 3, 2, 5, 0];

function inside(dtype: DType): Tensor {
  const whole = tensor([9, 9, 9, ...VALUES, 9, 9], { dtype });
  return span(whole, 3, 3 + VALUES.length).reshape([2, 3]);
}

const READS: Readonly<Record<string, (x: Tensor) => unknown>> = {
  data: (x) => x.data(),
  dataSync: (x) => x.dataSync(),
  bytes: (x) => x.bytes(),
  bytesSync: (x) => x.bytesSync(),
  tolist: (x) => x.tolist(),
  "item of one": (x) => span(x, 2, 3).item(),
  "Number of one": (x) => Number(span(x, 2, 3)),
  inspect: (x) => x[inspectSymbol](),
  hostBytes: (x) => hostBytes(x, "read"),
  readInto: (x) => {
    const bytes = new Uint8Array(x.bytesSync().length);
    readInto(x, bytes);
    return bytes;
  },
  clone: (x) => x.clone().tolist(),
  "to f64": (x) => x.to("f64").tolist(),
  "to u8": (x) => x.to("u8").tolist(),
  maskedSelect: async (x) =>
    (
      await maskedSelect(
        x,
        tensor([
          [true, false, true],
          [true, true, false],
        ]),
      )
    ).tolist(),
  nonzero: async (x) => (await nonzero(x)).tolist(),
  unique: async (x) => (await unique(x)).values.tolist(),
  set: (x) => {
    x.set([
      [1, 1, 0],
      [0, 1, 1],
    ]);
    return x.tolist();
  },
  "set of a tensor": (x) => {
    x.set(ones([2, 3]));
    return x.tolist();
  },
  assign: (x) => {
    noGrad(() => x.assign([1, [1, 3]], [1, 0]));
    return x.tolist();
  },
};

describe.each(DTYPES)("of %s", (dtype) => {
  it.each(Object.entries(READS))("%s", async (_, read) => {
    const own = tensor(VALUES, { dtype }).reshape([2, 3]);
    const part = inside(dtype);
    const expected = await read(own);
    const found = await read(part);
    expect(found).toEqual(expected);
  });

  it("a write leaves its neighbours", () => {
    const whole = tensor([9, 9, 9, ...VALUES, 9, 9], { dtype });
    const before = whole.tolist() as unknown[];
    const part = span(whole, 3, 3 + VALUES.length);
    part.set(tensor(VALUES.map(() => 1)));
    part.assign([[0, 2]], 0);
    expect((whole.tolist() as unknown[]).filter((_, i) => i < 3 || i > 8)).toEqual(
      before.filter((_, i) => i < 3 || i > 8),
    );
  });
});

it("the console's parts of a long one are its own", () => {
  const numbers = Array.from({ length: 2000 }, (_, i) => i);
  const text = (x: Tensor) => x[inspectSymbol]();
  expect(text(span(tensor([7, ...numbers]), 1, 2001))).toBe(text(tensor(numbers)));
});

it("the line that an error shows for a part of parts writes there", () => {
  const index = fc.integer({ min: 0, max: 1 });
  const step = fc.oneof(
    index.map((i) => ["select 0", (x: Tensor) => x.select(0, i)] as const),
    index.map((i) => ["select last", (x: Tensor) => x.select(-1, i)] as const),
    index.map((i) => ["slice", (x: Tensor) => x.slice(i, 6)] as const),
    fc.constant(["every second", (x: Tensor) => x.at([null, null, 2])] as const),
    fc.constant(["every second but the first", (x: Tensor) => x.at([1, null, 2])] as const),
    fc.constant(["transpose", (x: Tensor) => x.transpose()] as const),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => {
      const numbers = tensor(
        Array.from({ length: 6 * 7 * 5 }, (_, i) => i),
        { shape: [6, 7, 5] },
      );
      const x = numbers.clone();
      let part = x;
      for (const [, take] of steps) {
        if (part.shape.length < 2 || part.shape.some((extent) => extent < 2)) break;
        part = take(part);
      }
      const value = ones(part.shape).neg();
      let line = "";
      try {
        part.set(value);
      } catch (error) {
        line = /Write (.*)\. For a copy/.exec(String(error))![1]!;
      }
      const chosen = new Set(part.dataSync());
      new Function("x", "value", line)(x, value);
      expect([...x.dataSync()]).toEqual([...numbers.dataSync()].map((number) => (chosen.has(number) ? -1 : number)));
    }),
  );
});
