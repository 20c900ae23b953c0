/** Values and texts of any letters come back from every format that has a place for them. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
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

it.each<[path: string, Omit<ConvertOptions, "fileSystem">]>([
  ["a.safetensors", { to: "safetensors" }],
  ["set", { to: "safetensors", maxShardSize: 4 }],
  ["a.ckpt", { to: "ckpt", crc: true }],
  ["ranks", { to: "ckpt", ranks: 2 }],
  ["a.pt", { to: "pt" }],
  ["dcp", { to: "dcp" }],
  ["run", { to: "checkpoint", ranks: 2 }],
])("%s", async (path, way) => {
  await fc.assert(
    fc.asyncProperty(values, async (values) => {
      const options = { fileSystem: new MemoryFileSystem() };
      const tensors = { w: { dtype: "f32", shape: [2], data: Float32Array.of(1, 2) } };
      await saveCheckpoint("/from", { step: 4, tensors, values: values as never }, options);
      await convertCheckpoint("/from", `/${path}`, { ...way, ...options });
      await convertCheckpoint(`/${path}`, "/back", { to: "checkpoint", ...options });
      const back = await loadCheckpoint("/back", options);
      expect(Object.fromEntries(leaves(back.values))).toMatchObject(Object.fromEntries(leaves(values)));
      expect(Object.values(back.tensors).map((each) => each.tolist())).toEqual([[1, 2]]);
    }),
    { seed: 3, numRuns: 5 },
  );
});
