import { Tensor, tensor, tensorFromBytes } from "@opt/core";
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { Alphabet, type Collated, collate, fromImages, parseIdx, Subset, TensorDataset, Windows } from "./index";
import { rowsOf } from "./rows";

describe("collate", () => {
  it("makes a tensor of each field, of the dtype of its samples", () => {
    const [x, y, name] = collate([
      [tensor([1, 2], { dtype: "f64" }), 3, "a"],
      [tensor([4, 5], { dtype: "f64" }), 6, "b"],
    ] as const);
    expect([x.shape, x.dtype, [...x.dataSync()]]).toEqual([[2, 2], "f64", [1, 2, 4, 5]]);
    expect([y.shape, y.dtype, name]).toEqual([[2], "f32", ["a", "b"]]);
  });

  it("takes objects, nested arrays, booleans, typed arrays", () => {
    const batch = collate([
      { image: [[1, 2]], seen: true, id: Int32Array.of(7) },
      { image: [[3, 4]], seen: false, id: Int32Array.of(8) },
    ]);
    expect([batch.image.shape, batch.seen.dtype, batch.id.shape, batch.id.dtype]).toEqual([
      [2, 1, 2],
      "bool",
      [2, 1],
      "i32",
    ]);
    expect(collate([1, 2, 3]).shape).toEqual([3]);
  });

  it("has the type of its batches, of interfaces too", () => {
    interface Sample {
      readonly image: number[][];
      label: number;
      name: string;
      at: { x: number; when: Date };
    }
    type Batch = { image: Tensor; label: Tensor; name: string[]; at: { x: Tensor; when: Date[] } };
    expectTypeOf<Collated<Sample>>().toEqualTypeOf<Batch>();
    expectTypeOf<Collated<[Sample, number]>>().toEqualTypeOf<[Batch, Tensor]>();
    expectTypeOf<Collated<Map<string, number>>>().toEqualTypeOf<Map<string, number>[]>();
    expectTypeOf<Collated<{ x: Float32Array; y: boolean }>>().toEqualTypeOf<{ x: Tensor; y: Tensor }>();
    const when = new Date(0);
    expect(collate([{ image: [[1]], label: 0, name: "a", at: { x: 1, when } }]).at.when).toEqual([when]);
  });

  it.each<[string, unknown[]]>([
    ["tensors of other shapes", [tensor([1]), tensor([1, 2])]],
    ["arrays of other lengths", [Int32Array.of(1), Int32Array.of(1, 2)]],
    ["arrays of other kinds", [Int32Array.of(1), Float32Array.of(1)]],
    ["tuples of other lengths", [[1, 2], [1]]],
    ["rows of other lengths", [[[1, 2]], [[1]]]],
    ["objects of other fields", [{ a: 1 }, { b: 1 }]],
    ["a number beside text", [[1], ["a"]]],
    ["text beside a number", [["a"], [1]]],
  ])("rejects %s", (_, samples) => {
    expectCode("BAD_SHAPE", () => collate(samples));
  });
});

describe("samples of any form", () => {
  const number = fc.integer({ min: -9, max: 9 });
  const { form } = fc.letrec((tie) => ({
    form: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom("number", "boolean", "text", "array", "tensor"),
      tie("record"),
      tie("list"),
    ),
    record: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("form"), { minKeys: 1 }),
    list: fc.array(fc.oneof(fc.constant("text"), tie("record")), { minLength: 1, maxLength: 3 }),
  })) as { form: fc.Arbitrary<unknown> };
  /** A sample of a form; every second one has its fields in the other order. */
  const made = (form: unknown, i: number): unknown => {
    if (form === "number") return i;
    if (form === "boolean") return i % 2 === 0;
    if (form === "text") return `text ${i}`;
    if (form === "array") return Int32Array.of(i, 2 * i);
    if (form === "tensor") return tensor([[i], [3 * i]]);
    if (Array.isArray(form)) return form.map((each) => made(each, i));
    const fields = Object.entries(form as object).map(([name, each]) => [name, made(each, i)] as const);
    return Object.fromEntries(i % 2 === 0 ? fields : fields.reverse());
  };
  const plain = (value: unknown): unknown =>
    value instanceof Tensor ? value.tolist() : ArrayBuffer.isView(value) ? Array.from(value as Int32Array) : value;
  const expectRow = (batch: unknown, i: number, sample: unknown): void => {
    if (batch instanceof Tensor) expect((batch.tolist() as unknown[])[i]).toEqual(plain(sample));
    else if (typeof sample === "string") expect((batch as string[])[i]).toBe(sample);
    else
      for (const [name, field] of Object.entries(sample as object))
        expectRow((batch as Record<string, unknown>)[name], i, field);
  };

  it("are row i of each field, whatever the order of fields is", () => {
    fc.assert(
      fc.property(form, fc.array(number, { minLength: 1, maxLength: 4 }), (form, numbers) => {
        const samples = numbers.map((i) => made(form, i));
        const batch = collate(samples);
        for (const [i, sample] of samples.entries()) expectRow(batch, i, sample);
      }),
    );
  });
});

describe("what is a part of a larger buffer is read from where it begins:", () => {
  /** The same elements behind others. */
  const inside = <A extends Uint8Array | Int32Array | Float32Array | Uint8ClampedArray>(array: A): A => {
    const whole = new (array.constructor as new (length: number) => A)(array.length + 5).fill(9);
    whole.set(array, 3);
    return whole.subarray(3, 3 + array.length) as A;
  };
  const idx = Uint8Array.of(0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6);
  const all = (batch: unknown) => [batch].flat().map((x) => (x instanceof Tensor ? x.tolist() : x));
  it.each<[string, (given: typeof inside) => unknown]>([
    ["parseIdx", (given) => parseIdx(given(idx))],
    [
      "TensorDataset",
      (given) => all(new TensorDataset({ data: given(Int32Array.of(1, 2, 3, 4)), shape: [2, 2] }).get(1)),
    ],
    ["Windows", (given) => all(new Windows(given(Int32Array.of(1, 2, 3, 4)), { length: 2 }).get(1))],
    ["collate", (given) => all(collate([given(Int32Array.of(1, 2)), given(Int32Array.of(3, 4))]))],
    ["fromImages", (given) => fromImages([{ data: given(Uint8ClampedArray.of(1, 2, 3, 4)), width: 1, height: 1 }])],
    ["Subset", (given) => [...new Subset(["a", "b", "c"], given(Int32Array.of(2, 0))).indices]],
    ["tensor", (given) => all(tensor(given(Float32Array.of(1, 2))))],
    ["tensorFromBytes", (given) => all(tensorFromBytes(given(Uint8Array.of(0, 0, 128, 63)), [1], { dtype: "f32" }))],
    [
      "set",
      (given) => {
        const x = tensor([0, 0]);
        x.set(given(Float32Array.of(1, 2)));
        return all(x);
      },
    ],
  ])("%s", (_, run) => expect(run(inside)).toEqual(run((array) => array)));
});

it.each<[unknown[]]>([[[]], [[undefined]], [[null]], [[[1, undefined]]], [[{ label: null }]]])(
  "collate rejects %j",
  (samples) => {
    expectCode("BAD_ARGUMENT", () => collate(samples));
  },
);

it("what Node reads from files is bytes as others are", () => {
  const [file, bytes] = [Buffer.of(1, 2), Uint8Array.of(3, 4)];
  expect(rowsOf(file, [1], 1)).toStrictEqual(Uint8Array.of(2));
  expect(collate([file, bytes]).tolist()).toEqual([
    [1, 2],
    [3, 4],
  ]);
});

describe("TensorDataset", () => {
  it.each(["f32", "f64", "bf16", "f16", "i32", "u8", "bool"] as const)("gives rows of %s as they are", (dtype) => {
    const [x] = new TensorDataset(
      tensor(
        [
          [1, 0],
          [0, 1],
          [1, 1],
        ],
        { dtype },
      ),
    ).batch(Int32Array.of(2, 0)) as [never];
    expect([(x as { dtype: string }).dtype, [...(x as { dataSync(): Iterable<number> }).dataSync()]]).toEqual([
      dtype,
      [1, 1, 1, 0],
    ]);
  });

  it("gives a sample without the axis that counts them, a scalar from one axis", () => {
    const [x, y] = new TensorDataset(
      tensor([
        [1, 2],
        [3, 4],
      ]),
      tensor([5, 6]),
    ).get(1);
    expect([x.shape, y.shape, Number(y)]).toEqual([[2], [], 6]);
  });

  it("rejects columns of other lengths, missing data, positions beyond", () => {
    expectCode("BAD_SHAPE", () => new TensorDataset(tensor([1, 2]), tensor([1])));
    expectCode("BAD_SHAPE", () => new TensorDataset({ data: new Float32Array(5), shape: [2, 3] }));
    expectCode("BAD_ARGUMENT", () => new TensorDataset());
    expectCode("BAD_ARGUMENT", () => new TensorDataset(tensor(1)));
    expect(() => new TensorDataset([0, 1] as never)).toThrow('for classes tensor(list, { dtype: "i32" })');
    expectCode("BAD_ARGUMENT", () => new TensorDataset(tensor([1])).get(1));
    expectCode("BAD_ARGUMENT", () => new TensorDataset({ data: new Float32Array(6), shape: [-2, -3] }));
  });
});

it("windows follow one another by their stride, labels by one", () => {
  const windows = new Windows(Int32Array.of(0, 1, 2, 3, 4, 5), { length: 2, stride: 2 });
  const [x, y] = windows.batch(Int32Array.of(0, 1));
  expect([windows.length, x.tolist(), y.tolist()]).toEqual([
    2,
    [
      [0, 1],
      [2, 3],
    ],
    [
      [1, 2],
      [3, 4],
    ],
  ]);
  expect(new Windows(Int32Array.of(0, 1, 2), { length: 2, stride: 9 }).length).toBe(1);
  expectCode("BAD_ARGUMENT", () => new Windows(Int32Array.of(0, 1), { length: 2 }));
  expectCode("BAD_ARGUMENT", () => windows.get(2));
});

it("an alphabet gives its text back, and rejects others", () => {
  const alphabet = new Alphabet("to be, or not");
  expect(alphabet.decode(alphabet.encode("not to be"))).toBe("not to be");
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const own = new Alphabet(text);
      expect(own.decode(own.encode(text))).toBe(text);
      expect(own.decode(Array.from({ length: own.length }, (_, i) => i))).toBe([...new Set(text)].sort().join(""));
    }),
    { seed: 48 },
  );
  expectCode("BAD_ARGUMENT", () => alphabet.encode("x"));
  expectCode("BAD_ARGUMENT", () => alphabet.decode([99]));
  expectCode("BAD_ARGUMENT", () => alphabet.decode("01" as never));
});

describe("parseIdx", () => {
  it("reads shape and data", () => {
    const { shape, data } = parseIdx(Uint8Array.of(0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9));
    expect([shape, Array.from<number>(data)]).toEqual([
      [1, 3],
      [7, 8, 9],
    ]);
  });

  it.each([[[]], [[0, 0, 13, 1, 0, 0, 0, 0]], [[0, 0, 8, 1, 0, 0]], [[0, 0, 8, 1, 0, 0, 0, 2, 7]]])(
    "rejects %j",
    (bytes) => {
      expectCode("CORRUPT", () => parseIdx(Uint8Array.from(bytes)));
    },
  );
});
