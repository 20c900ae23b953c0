import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { ggufOf, QUANTS } from "../../../testing/files/gguf";
import { floats } from "../../../testing/files/made-files";
import { openFiles } from "../../../testing/open-files";
import { readFloats, readTensor } from "../../../testing/read-tensor";

/** What gguf 0.19 unpacks each tensor of the file to. */
const EXPECTED = [
  ["Q4_0", "edceb3cf2770541b"],
  ["Q4_1", "e8b0fe10e03ce347"],
  ["Q5_0", "8b588a2ea86c9a2d"],
  ["Q5_1", "fe15b418b0c5e818"],
  ["Q8_0", "9eedbe812e636f07"],
  ["Q2_K", "cc78a03753246de2"],
  ["Q3_K", "732c83c79ff95b5f"],
  ["Q4_K", "6c5ef717c6f4d2ec"],
  ["Q5_K", "048f28e3ad845a58"],
  ["Q6_K", "95b9c9a2271a0abe"],
] as const;

const open = (bytes: Uint8Array) => openFiles({ "a.bin": bytes });

describe("GGUF", () => {
  it.each(EXPECTED)("unpacks %s as its own library does, whole and in parts", async (name, sha256) => {
    const source = await open(readFileSync(QUANTS));
    const whole = await readTensor(source, name);
    expect(source.tensors.get(name)).toMatchObject({ dtype: "F32", shape: [1, 256] });
    expect(createHash("sha256").update(whole).digest("hex").slice(0, 16)).toBe(sha256);
    const part = new Uint8Array(200);
    await source.tensors.get(name)!.boxes[0]!.read(part, 101);
    expect(part).toEqual(whole.subarray(101, 301));
  });

  it("gives plain tensors, and its metadata as values", async () => {
    const source = await open(readFileSync(QUANTS));
    expect(source.tensors.get("plain")).toMatchObject({ dtype: "F16", shape: [2, 3] });
    expect(source.values).toEqual({ "general.architecture": "llama", n: 5, short: ["a", "b"] });
  });

  it("reverses dimensions, skips long lists and those of tokenizers, and lists what is quantized otherwise", async () => {
    const tensors = [
      { name: "w", dims: [1, 2], type: 0, data: floats(1, 2) },
      { name: "q", dims: [256], type: 20, data: floats() },
    ];
    const source = await open(
      ggufOf(tensors, {
        words: Array.from({ length: 65 }, () => "a"),
        "tokenizer.ggml.tokens": ["a", "b"],
        few: Array.from({ length: 64 }, () => "a"),
        "tokenizer.ggml.eos_token_id": 2,
        "general.alignment": 64,
      }),
    );
    expect(source.tensors.get("w")!.shape).toEqual([2, 1]);
    expect(await readFloats(source, "w")).toEqual([1, 2]);
    expect(Object.keys(source.values)).toEqual(["few", "tokenizer.ggml.eos_token_id", "general.alignment"]);
    expect(source.skipped).toEqual([
      { name: "words", what: "a list of 65" },
      { name: "tokenizer.ggml.tokens", what: "a list of 2" },
    ]);
    expect([...source.unreadable!]).toEqual([["q", "it is quantized as ggml's type 20"]]);
  });

  it("finds tensors by the alignment that the file says", async () => {
    const lists = fc.array(fc.array(fc.integer({ min: -99, max: 99 }), { minLength: 1, maxLength: 9 }), {
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(8, 16, 32, 64, 256),
        fc.string({ maxLength: 70 }),
        lists,
        async (to, key, lists) => {
          const tensors = lists.map((values, i) => ({
            ...{ name: `t${i}`, dims: [values.length], type: 0, data: floats(...values) },
          }));
          const source = await open(ggufOf(tensors, { [`key ${key}`]: 1, "general.alignment": to }));
          for (const [i, values] of lists.entries()) expect(await readFloats(source, `t${i}`)).toEqual(values);
        },
      ),
    );
  });

  it.each([
    ["rows that end in a block", { dims: [16, 2], type: 8, data: new Uint8Array(34) }],
    ["more elements than there are bytes", { dims: [9], type: 0, data: floats(1) }],
    ["dimensions without end", { dims: Array.from({ length: 9 }, () => 1), type: 0, data: floats(1) }],
    ["more elements than there are numbers", { dims: [2 ** 40, 2 ** 40], type: 0, data: floats(1) }],
  ])("with %s is rejected", async (_, tensor) => {
    await expectCode("CORRUPT", open(ggufOf([{ name: "w", ...tensor }], {})));
  });

  it("that says a thing twice is rejected", async () => {
    const bytes = Buffer.from(ggufOf([], { ab: 1, xb: 2 }));
    await expectCode("CORRUPT", open(bytes.fill("a", bytes.indexOf("xb"), bytes.indexOf("xb") + 1)));
  });

  it("of another version or order of bytes is named", async () => {
    for (const version of [1, 0x03000000]) await expectCode("UNSUPPORTED", open(ggufOf([], {}, version)));
  });
});
