import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { flaxFile } from "../../../testing/files/flax";
import { messagePackOf } from "../../../testing/files/message-pack";
import { openFiles } from "../../../testing/open-files";
import { readFloats, readTensor } from "../../../testing/read-tensor";
import { usingSource } from "../../../testing/using-source";

const open = (...bytes: number[]) => openFiles({ "a.msgpack": Uint8Array.from(bytes) });

describe("flax's MessagePack", () => {
  it.each(["whole", "chunked"] as const)("gives arrays by their names, %s", async (name) => {
    await usingSource(flaxFile(name), async (source) => {
      expect(source.format).toBe("flax msgpack");
      expect(Array.from(source.tensors.values(), ({ name, dtype, shape }) => [name, dtype, shape])).toEqual([
        ["params.fc.kernel", "F32", [2, 3]],
        ["params.fc.bias", "BF16", [2]],
        ["count", "I32", []],
        ["mask", "BOOL", [16, 20]],
      ]);
      expect(await readFloats(source, "params.fc.kernel")).toEqual([0, 1, 2, 3, 4, 5]);
      expect((await readTensor(source, "mask")).every((byte) => byte === 1)).toBe(true);
    });
  });

  it("gives everything else as values, and lists arrays of texts", async () => {
    await usingSource(flaxFile("values"), async (source) => {
      expect(source.step).toBe(7);
      expect(source.values).toEqual({
        ...{ step: 7, x: 1.5, neg: -3, low: -70000, big: String(2n ** 60n), t: "hi", n: null, inf: "Infinity" },
        ...{ "cplx.0": 1, "cplx.1": 2 },
      });
      expect([...source.tensors.keys()]).toEqual(["l.0", "l.1.q", "np"]);
      expect([...source.unreadable!]).toEqual([["odd", 'it has the dtype "str32"']]);
    });
  });

  it("reads values in each form that MessagePack has for them", async () => {
    const integer = fc.oneof(
      fc.integer(),
      fc.integer({ min: -300, max: 300 }),
      fc.integer({ min: 65_500, max: 2 ** 32 - 1 }),
    );
    const length = fc.constantFrom(0, 1, 15, 16, 31, 32, 255, 256, 300);
    const text = length.map((length) => "a".repeat(length));
    const float = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Number.isInteger(value));
    const value = fc.oneof(fc.constant(null), fc.boolean(), integer, float, text);
    const members = fc.tuple(length, fc.array(value, { minLength: 1, maxLength: 9 }), fc.boolean());
    await fc.assert(
      fc.asyncProperty(members, fc.nat(2), async ([length, values, isList], longer) => {
        const all = Array.from({ length }, (_, i) => values[i % values.length]!);
        const named = all.map((value, i): [string, typeof value] => [`${i}`, value]);
        const source = await open(...messagePackOf(new Map([["a", isList ? all : new Map(named)]]), longer));
        expect(source.values).toEqual(Object.fromEntries(named.map(([name, value]) => [`a.${name}`, value])));
      }),
    );
  });

  it.each([
    ["a list that is longer than the file", [0xdd, 0xff, 0xff, 0xff, 0xff]],
    ["a text that is longer than the file", [0xdb, 0xff, 0xff, 0xff, 0xff, 0x61]],
    ["an array that is longer than its extension", [0xc7, 5, 1, 0x93, 0x90, 0xa2, 0x75, 0x38, 0xc4, 1, 0]],
    ["lists in lists", Array.from({ length: 200 }, () => 0x91)],
    ["a key twice", [0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2]],
    ["a key that is none", [0x81, 0xc0, 1]],
    ["another extension", [0xd4, 9, 0]],
    ["what follows", [0x80, 0x80]],
    ["chunks that are no arrays", [0x81, 0xb9, ...Buffer.from("__msgpack_chunked_array__"), 0xc3]],
  ])("rejects %s", async (_, bytes) => {
    await expectCode("CORRUPT", open(...bytes));
  });

  it("rejects files that are cut short", async () => {
    const whole = readFileSync(flaxFile("whole"));
    for (let length = 1; length < whole.length; length += 7)
      await expectCode("CORRUPT", open(...whole.subarray(0, length)));
  });
});
