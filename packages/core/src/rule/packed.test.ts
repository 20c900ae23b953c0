// State in 8 bits: the codes are bitsandbytes' values, the nearest one is taken, and packing what was unpacked changes no bit.
import "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codebookOf, PACKED_BLOCK, type PackedDType, packedBytes } from "./codebook";
import { pack, packedUpdate, unpack } from "./packed";
import { defineRule } from "./rule";
import { interpreted } from "./stored";
import { add, fma } from "./symbols";

const FORMATS = ["q8", "uq8"] as const;

/** `create_dynamic_map`: means of neighbours in linspace(0.1, 1), which are twice as many in each decade as in the one below. */
function dynamicMap(signed: boolean): number[] {
  const values = [0, 1];
  for (let decade = 0; decade < 7; decade++) {
    const count = 2 ** (signed ? decade : decade + 1);
    for (let j = 0; j < count; j++) {
      const mean = (0.1 + (0.9 * j) / count + 0.1 + (0.9 * (j + 1)) / count) / 2;
      values.push(mean * 10 ** (decade - 6), ...(signed ? [-mean * 10 ** (decade - 6)] : []));
    }
  }
  return values.sort((a, b) => a - b);
}

function packed(values: ArrayLike<number>, format: PackedDType): Uint8Array {
  const bytes = new Uint8Array(packedBytes(values.length, format));
  pack(Float32Array.from(values), bytes, format, 0);
  return bytes;
}

function unpacked(bytes: Uint8Array, format: PackedDType, length: number): Float32Array {
  const values = new Float32Array(length);
  unpack(bytes, format, 0, values);
  return values;
}

describe.each(FORMATS)("%s", (format) => {
  const signed = format === "q8";
  const sorted = dynamicMap(signed);

  it("has 256 values, those of the dynamic map", () => {
    const values = [...codebookOf(format).values].sort((a, b) => a - b);
    // Of q8 the sign of the scale turns them round: the value of largest magnitude is -1.
    const expected = signed ? sorted.map((x) => -x).reverse() : sorted;
    expect(values).toHaveLength(256);
    values.forEach((value, i) => {
      expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(1e-6 * Math.abs(expected[i]!));
    });
    const magnitudes = sorted.filter((x) => x >= 0);
    const segment = (n: number) => Math.floor(Math.log2(signed ? 2 * n + 1 : n + 1));
    const middles = magnitudes.flatMap((x, n) =>
      n > 0 && segment(n) > segment(n - 1) ? [(magnitudes[n - 1]! + x) / 2] : [],
    );
    expect(codebookOf(format).edges).toAgreeWith(middles, { absolute: 0, relative: 1e-6 });
  });

  it("takes the nearest value, and either of two where the middle is nearer than float32 tells", () => {
    const values = Float64Array.from(codebookOf(format).values).sort();
    for (let i = 0; i + 1 < values.length; i++) {
      const [a, b] = [values[i]!, values[i + 1]!];
      const middle = (a + b) / 2;
      const near = [a, a + 0.4999 * (b - a), b - 0.4999 * (b - a), b].map(Math.fround);
      // The last element is the scale.
      const block = [...near, Math.fround(middle), signed ? -1 : 1];
      const result = unpacked(packed(block, format), format, block.length);
      const isKeptAbove = !signed && a === 0;
      const expected = [a, isKeptAbove ? b : a, b, b];
      expect(
        [...result.subarray(0, 4)].map((x) => x + 0),
        `${a} to ${b}`,
      ).toEqual(expected.map((x) => x + 0));
      expect([a, b]).toContain(result[4]! + 0);
    }
  });

  it("changes no bit when what was unpacked is packed", () => {
    const float = fc.oneof(
      fc.float({ noNaN: false }),
      fc.double({ min: -1, max: 1, noNaN: true }),
      fc.double({ min: -30, max: 30, noNaN: true }).map((e) => Math.sign(e) * 10 ** e),
      fc.constantFrom(0, -0, 2 ** -104, -(2 ** -104), 2 ** -149, 3.4028234663852886e38, -3.4028234663852886e38),
    );
    const power = fc.integer({ min: -140, max: 120 }).map((e) => 2 ** e);
    fc.assert(
      fc.property(fc.array(float, { minLength: 1, maxLength: 700 }), power, (list, scale) => {
        const values = list.map((x) => Math.fround((signed ? x : Math.abs(x)) * scale));
        const first = packed(values, format);
        const second = packed(unpacked(first, format, values.length), format);
        expect(second).toEqual(first);
      }),
      { seed: 8, numRuns: 400 },
    );
  });

  it("keeps each block's largest value, and 0 for what is not finite", () => {
    const values = Float32Array.from({ length: PACKED_BLOCK + 3 }, (_, i) => (signed && i % 2 ? -1 : 1) * (i + 1));
    values[7] = Number.NaN;
    values[8] = Infinity;
    values[PACKED_BLOCK] = signed ? 1e-30 : -1;
    const result = unpacked(packed(values, format), format, values.length);
    expect(result[PACKED_BLOCK - 1]).toBe(values[PACKED_BLOCK - 1]);
    expect(result[PACKED_BLOCK + 2]).toBe(values[PACKED_BLOCK + 2]);
    expect([result[7]! + 0, result[8]! + 0, result[PACKED_BLOCK]! + 0]).toEqual([0, 0, 0]);
  });

  it("is zero where memory is fresh, and where the block's largest is below 2^-104", () => {
    expect([...unpacked(new Uint8Array(packedBytes(300, "q8")), format, 300)]).toEqual(new Array(300).fill(0));
    expect(packed([2 ** -105, 2 ** -110], format)).toEqual(new Uint8Array(packedBytes(2, "q8")));
  });

  it("errs by no more than half of a gap", () => {
    const values = Float32Array.from({ length: 4096 }, (_, i) => ((i * 2654435761) % 4096) / 4096 + 2 ** -20);
    const result = unpacked(packed(values, format), format, values.length);
    const error = Math.max(...values.map((x, i) => Math.abs(x - result[i]!)));
    expect(error).toBeLessThan(0.9 / (signed ? 64 : 128) / 2 + 1e-6);
  });
});

it.each([
  [1, -1],
  [-2.999, 3],
])("keeps the sign of what is as large as the largest, of %d and %d", (a, b) => {
  const result = unpacked(packed([a, b], "q8"), "q8", 2);
  const largest = Math.max(a, b);
  expect(result).toEqual(
    Float32Array.of(...[a, b].map((x) => (x === largest ? x : -Math.fround(codebookOf("q8").values[129]!) * -largest))),
  );
});

it("never makes 0 of what is above it and divided by", () => {
  const values = [1, 2 ** -100, 0, 1e-9, 1.5e-7];
  const smallest = codebookOf("uq8").values[1]!;
  expect([...unpacked(packed(values, "uq8"), "uq8", 5)]).toEqual([1, smallest, 0, smallest, smallest]);
});

it("takes 8 bits an element and a float32 a block", () => {
  expect([0, 1, 256, 257, 4096].map((length) => packedBytes(length, "q8"))).toEqual([0, 8, 260, 268, 4160]);
});

describe("bf16x", () => {
  const wordsOf = (values: Float32Array) => new Uint32Array(values.buffer, values.byteOffset, values.length);
  const samples = Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i) * 10 ** ((i % 60) - 30));

  it("takes 24 bits an element, in whole blocks of 16 bits", () => {
    expect([0, 1, 256, 257, 4096].map((length) => packedBytes(length, "bf16x"))).toEqual([0, 516, 768, 1284, 12_288]);
  });

  it("is the nearest float32 whose last 8 bits are 0, the even one of two", () => {
    const nearest = samples.map((value) => {
      const lower = Number(wordsOf(Float32Array.of(value))[0]! & 0xffffff00) >>> 0;
      const [a, b] = new Float32Array(Uint32Array.of(lower, lower + 0x100).buffer);
      const isHalf = Math.abs(value - a!) === Math.abs(b! - value);
      return isHalf ? ((lower & 0x100) === 0 ? a! : b!) : Math.abs(value - a!) < Math.abs(b! - value) ? a! : b!;
    });
    expect([...unpacked(packed(samples, "bf16x"), "bf16x", 1000)]).toEqual([...nearest]);
  });

  it("rounds a half to even, keeps infinities, and makes all NaN one", () => {
    const given = Uint32Array.of(
      0x3f800080,
      0x3f800180,
      0x3f80ff80,
      0x7f800000,
      0xff800000,
      0x7f800001,
      0xffffffff,
      0x80000000,
    );
    const kept = unpacked(packed(new Float32Array(given.buffer), "bf16x"), "bf16x", given.length);
    const wanted = [0x3f800000, 0x3f800200, 0x3f810000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fc00000, 0x80000000];
    expect([...wordsOf(kept)]).toEqual(wanted);
  });

  it("has bfloat16 of 24 bits as its first 16", () => {
    const bytes = packed(samples, "bf16x");
    const high = new Uint16Array(bytes.buffer, 0, 256);
    const values = unpacked(bytes, "bf16x", 256);
    const off = [...high].map((bits, i) =>
      Math.abs(new Float32Array(Uint32Array.of(bits << 16).buffer)[0]! - values[i]!),
    );
    expect(off.every((each, i) => each <= Math.abs(values[i]!) * 2 ** -8)).toBe(true);
  });

  it("does not change what was unpacked", () => {
    const once = unpacked(packed(samples, "bf16x"), "bf16x", 1000);
    expect([...wordsOf(unpacked(packed(once, "bf16x"), "bf16x", 1000))]).toEqual([...wordsOf(once)]);
  });
});

it("updates a long state as its parts, the last one of any length", () => {
  const { program } = defineRule({
    name: "sum",
    buffers: ["param", "grad", "sum"],
    scalars: ["decay"],
    update: ({ param, grad, sum }, { decay }) => ({ param: add(param, sum), sum: fma(decay, sum, grad) }),
  });
  const update = packedUpdate(program, ["f32", "f32", "q8"], (formats) => interpreted(program, "f32", formats));
  const cut = 65 * PACKED_BLOCK;
  const length = cut + PACKED_BLOCK + 44;
  const made = () => {
    const values = (by: number) => Float32Array.from({ length }, (_, i) => Math.sin(i * by));
    return { param: values(0.1), grad: values(0.3), sum: packed(values(0.7), "q8") };
  };
  const [whole, parts] = [made(), made()];
  update([whole.param, whole.grad, whole.sum], [0.5]);
  for (const [from, to] of [
    [0, cut],
    [cut, cut + PACKED_BLOCK],
    [cut + PACKED_BLOCK, length],
  ] as const) {
    const { param, grad, sum } = parts;
    const part = [
      param.subarray(from, to),
      grad.subarray(from, to),
      sum.subarray(packedBytes(from, "q8"), packedBytes(to, "q8")),
    ];
    update(part, [0.5]);
  }
  const bytes = (arrays: typeof whole) => Object.values(arrays).map((array) => Buffer.from(array.buffer));
  bytes(whole).forEach((array, i) => {
    expect(array.equals(bytes(parts)[i]!)).toBe(true);
  });
});
