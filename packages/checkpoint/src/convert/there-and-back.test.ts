/** What is converted comes back: tensors of every dtype from every format, values and texts of any letters from those that have a place for them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { bytesOf, bytesPerElement, type StoredDType } from "../format/dtype";
import type { Json } from "../format/source";
import { convertCheckpoint, loadCheckpoint, saveCheckpoint } from "../index";
import type { ConvertOptions } from "./convert";

const text = fc.string({ unit: fc.constantFrom("a", "é", "\u{1f600}", "'", "\\", "\n", " "), maxLength: 4 });
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    text,
    fc.constantFrom(0, 1, -3, 0.1, 1e300, 2 ** 53 - 1, -(2 ** 40), true, false, null),
    fc.array(tie("json"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("x", "y z", "0"), tie("json"), { maxKeys: 3 }),
  ),
}));
const values = fc.record({ a: text, b: json, "c d": json, é: json, "e.f": json, g: fc.constant("\u{1f600}'\\\n") });

/** PyTorch's files name what is nested by dots. */
const leaves = (value: unknown, name = ""): [string, unknown][] =>
  Object(value) === value
    ? Object.entries(value as object).flatMap(([key, item]) => leaves(item, name === "" ? key : `${name}.${key}`))
    : [[name, value]];

const DTYPES = "F64 F32 F16 BF16 I64 I32 I16 I8 U8 U16 U32 U64 BOOL C64 F8_E4M3 F8_E5M2".split(" ") as StoredDType[];
type Held = Record<string, { dtype: string; shape: readonly number[]; data: Uint8Array }>;
const held = (names: readonly string[], dtype: StoredDType): Held =>
  Object.fromEntries(
    [[3, 2], [], [0, 2]].flatMap((shape, i) =>
      names.map((name) => {
        const data = Uint8Array.from({ length: bytesOf({ dtype, shape }) }, (_, at) =>
          dtype === "BOOL" ? at % 2 : at % bytesPerElement(dtype) === 0 ? 3 + at : 0,
        );
        return [i === 0 ? name : `${i}.${name}`, { dtype, shape, data }] as const;
      }),
    ),
  );
/** What PyTorch counts in I64, and what is only called alike. */
const COUNTS = ["bn.num_batches_tracked", "num_batches_tracked", "n_averaged", "module.n_averaged"];
const OTHERS = ["num_batches_tracked_.w", "an_averaged"];

type Way = Omit<ConvertOptions, "fileSystem">;
async function there(path: string, way: Way, tensors: Held, values: Record<string, Json> = {}) {
  const options = { fileSystem: new MemoryFileSystem() };
  await saveCheckpoint("/from", { step: 4, tensors, values }, options);
  const { unverified } = await convertCheckpoint("/from", `/${path}`, { ...way, ...options });
  expect(unverified.toSorted()).toEqual(way.verify === false ? Object.keys(tensors).sort() : []);
  await convertCheckpoint(`/${path}`, "/back", { to: "checkpoint", ...options });
  const back = await loadCheckpoint("/back", { ...options, as: "plain" });
  const named = Object.entries(back.tensors).map(([name, { dtype, shape, data }]) => [
    name.replace(/^model\./, ""),
    { dtype, shape, data: [...data] },
  ]);
  return { values: back.values, tensors: Object.fromEntries(named) };
}

describe.each<[path: string, way: Way, lacks: RegExp]>([
  ["a.safetensors", { to: "safetensors" }, /^$/],
  ["set", { to: "safetensors", maxShardSize: 4 }, /^$/],
  ["a.ckpt", { to: "ckpt", crc: true }, /^C|F8/],
  ["ranks", { to: "ckpt", ranks: 2 }, /^C|F8/],
  ["a.pt", { to: "pt" }, /^$/],
  ["dcp", { to: "dcp" }, /^$/],
  ["run", { to: "checkpoint", ranks: 2 }, /^$/],
  ["a.npz", { to: "npz" }, /BF|F8/],
  ["a.msgpack", { to: "msgpack" }, /^$/],
])("%s", (path, way, lacks) => {
  it("tensors of every dtype", async () => {
    const [missing, known] = [true, false].map((isMissing) =>
      DTYPES.filter((dtype) => lacks.test(dtype) === isMissing),
    );
    for (const dtype of missing!) await expectCode("UNSUPPORTED", there(path, way, held(["w"], dtype)));
    const all = Object.assign(
      {},
      ...known!.map((dtype) => held([`${dtype}.w`], dtype)),
      held([...COUNTS, ...OTHERS], "I32"),
    );
    const isCounted = (name: string) =>
      /^(pt|dcp)$/.test(way.to) && COUNTS.some((count) => name.endsWith(count) && !name.includes("an_"));
    const expected = Object.entries(all as Held).map(([name, { dtype, shape, data }]) => {
      const wide = isCounted(name)
        ? new Uint8Array(BigInt64Array.from(new Int32Array(data.buffer), BigInt).buffer)
        : data;
      return [name, { dtype: isCounted(name) ? "I64" : dtype, shape, data: [...wide] }];
    });
    expect((await there(path, way, all)).tensors).toEqual(Object.fromEntries(expected));
  });

  if (/npz|msgpack/.test(way.to)) return; // hold arrays alone
  it("values", async () => {
    await fc.assert(
      fc.asyncProperty(values, async (values) => {
        const back = await there(path, { ...way, verify: false }, held(["w"], "F32"), values as Record<string, Json>);
        expect(Object.fromEntries(leaves(back.values))).toMatchObject(Object.fromEntries(leaves(values)));
      }),
      { seed: 3, numRuns: 5 },
    );
  });
});
