/** Each way to take some of a checkpoint, or all under other names or in other dtypes, takes what the rules in the docs say. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { bytesOf, type StoredDType } from "../format/dtype";
import { numberWriter } from "../format/numbers";
import {
  convertCheckpoint,
  diffCheckpoints,
  inspectCheckpoint,
  loadCheckpoint,
  mergeCheckpoint,
  reshardCheckpoint,
  saveCheckpoint,
} from "../index";
import type { Selection } from "../read/select";
import type { NamingOptions } from "./named";

type Options = Pick<Selection, "names" | "exclude" | "dtype"> & Pick<NamingOptions, "rename" | "map">;
type Held = readonly { readonly name: string; readonly dtype: string; readonly shape: readonly number[] }[];

const HELD: Held = [
  { name: "enc.0.weight", dtype: "F32", shape: [3, 2] },
  { name: "enc.0.norm.weight", dtype: "F16", shape: [2] },
  { name: "enc.10.norm.weight", dtype: "F64", shape: [2, 0] },
  // More bytes than letters: formats count them.
  { name: `enc.${"é".repeat(20)}`, dtype: "F64", shape: [] },
  { name: "mask", dtype: "U8", shape: [4] },
  { name: "count", dtype: "I64", shape: [] },
];

/** The bytes of 1, 2, 3, ... */
function filled({ dtype, shape }: Held[number]): Uint8Array {
  const bytes = new Uint8Array(bytesOf({ dtype: dtype as StoredDType, shape }));
  const write = numberWriter(dtype as StoredDType, bytes, "test");
  for (let i = 0; i < shape.reduce((size, extent) => size * extent, 1); i++) write(i, i + 1);
  return bytes;
}

/** A star is any text, the first one the least that fits. */
const regular = (pattern: string) =>
  new RegExp(
    `^${pattern
      .replaceAll(".", "\\.")
      .replace("*", "(.*?)")
      .replaceAll(/(?<!\()\*/g, ".*")}$`,
  );

/** By the rules, or the code of the error. */
function expected({ names, exclude = [], dtype, rename = {}, map = {} }: Options): Held | string {
  const isUsed = (patterns: readonly string[], among: readonly string[]) =>
    patterns.every((pattern) => among.some((name) => regular(pattern).test(name)));
  const matches = (patterns: readonly string[], name: string) => patterns.some((each) => regular(each).test(name));
  const keys = Object.keys(map).sort((a, b) => b.length - a.length);
  const isUnder = (name: string, key: string) => name === key || name.startsWith(`${key}.`);
  const kept = HELD.filter(({ name }) => !matches(exclude, name));
  if (!keys.every((key) => kept.some(({ name }) => isUnder(name, key)))) return "MISSING";
  const mapped = kept.map((each) => {
    const key = keys.find((one) => isUnder(each.name, one));
    return key === undefined ? each : { ...each, name: map[key] + each.name.slice(key.length) };
  });
  const left = mapped.filter(({ name }) => !matches(exclude, name));
  const all = [...HELD, ...mapped].map(({ name }) => name);
  const used = new Set<string>();
  const named = left.map((each) => {
    const [pattern, to] = Object.entries(rename).find(([one]) => regular(one).test(each.name)) ?? [];
    if (pattern === undefined) return each;
    used.add(pattern);
    return { ...each, name: to!.replace("*", regular(pattern).exec(each.name)![1] ?? "") };
  });
  const news = named.map(({ name }) => name);
  const types = typeof dtype === "object" ? dtype : {};
  if (!isUsed(exclude, all) || left.length === 0) return "BAD_ARGUMENT";
  if (new Set(news).size < news.length) return "DUPLICATE";
  if (used.size < Object.keys(rename).length || !isUsed(names ?? [], news) || !isUsed(Object.keys(types), news))
    return "BAD_ARGUMENT";
  const typed = named.map((each) => {
    const own = Object.entries(types).find(([pattern]) => regular(pattern).test(each.name))?.[1];
    const isMeant = typeof dtype === "string" && each.shape.length > 0 && each.dtype.startsWith("F");
    return { ...each, dtype: (own ?? (isMeant ? (dtype as string) : each.dtype)).toUpperCase() };
  });
  return typed.filter(({ name }) => names === undefined || matches(names, name));
}

const patterns = fc.uniqueArray(fc.constantFrom("enc.*", "*.weight", "enc.*.norm.*", "count", "mask", "*", "e*"), {
  minLength: 1,
  maxLength: 2,
});
const to = fc.constantFrom("f32", "f16", "f64");
const options: fc.Arbitrary<Options> = fc.record(
  {
    names: patterns,
    exclude: patterns,
    dtype: fc.oneof(to, fc.dictionary(fc.constantFrom("*.weight", "count", "a.*"), to, { minKeys: 1, maxKeys: 2 })),
    rename: fc.dictionary(fc.constantFrom("enc.*", "*.norm.*", "count", "*"), fc.constantFrom("a.*", "*.d"), {
      ...{ minKeys: 1, maxKeys: 2 },
    }),
    map: fc.constantFrom<Record<string, string>[]>({ enc: "f" }, { "enc.0": "e", enc: "a" }, { count: "n.count" }),
  },
  { requiredKeys: [] },
);

/** Files of flax have nothing but their ending. */
const outOf = (way: string) => (way === "msgpack" ? "/out.msgpack" : "/out");
type Way = (options: Options, fileSystem: MemoryFileSystem) => Promise<unknown>;
const convert =
  (to: "safetensors" | "npz" | "msgpack" | "checkpoint", more = {}): Way =>
  (chosen, fileSystem) =>
    convertCheckpoint("/all", outOf(to), { ...chosen, to, fileSystem, ...more });
const WAYS: Record<string, Way> = {
  mergeCheckpoint: (chosen, fileSystem) => mergeCheckpoint("/all", "/out", { ...chosen, fileSystem }),
  reshardCheckpoint: (chosen, fileSystem) => reshardCheckpoint("/all", "/out", { ...chosen, ranks: 2, fileSystem }),
  safetensors: convert("safetensors"),
  "safetensors in several files": async (chosen, fileSystem) => {
    await convert("safetensors", { maxShardSize: 6 })(chosen, fileSystem);
    for (const { name } of await fileSystem.list("/out"))
      if (name.endsWith(".safetensors"))
        expect((await inspectCheckpoint(`/out/${name}`, { fileSystem })).tensors).not.toEqual([]);
  },
  checkpoint: convert("checkpoint"),
  npz: convert("npz"),
  msgpack: convert("msgpack"),
};

it("in every way", async () => {
  await fc.assert(
    fc.asyncProperty(options, async (chosen) => {
      const tensors = Object.fromEntries(HELD.map((each) => [each.name, { ...each, data: filled(each) }]));
      const rule = expected(chosen);
      const loaded = async (path: string, fileSystem: MemoryFileSystem, more: Options = {}) => {
        const { tensors } = await loadCheckpoint(path, { ...more, fileSystem, as: "plain" });
        return Object.entries(tensors).map(([name, { dtype, shape, data }]) => ({
          name,
          dtype,
          shape,
          data: [...data],
        }));
      };
      const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
      const wanted =
        typeof rule === "string" ? rule : rule.map((each) => ({ ...each, data: [...filled(each)] })).sort(byName);
      const saved = async () => {
        const fileSystem = new MemoryFileSystem();
        await saveCheckpoint("/all", { step: 1, tensors }, { fileSystem });
        return fileSystem;
      };
      const seen = (body: () => Promise<{ name: string }[]>) =>
        body().then(
          (all) => all.sort(byName),
          (error: { code?: string }) => error.code ?? error,
        );
      const whole = await saved();
      // A map is for what is written anew.
      if (!chosen.map) expect(await seen(() => loaded("/all", whole, chosen)), "loadCheckpoint").toEqual(wanted);
      for (const [way, run] of Object.entries(WAYS)) {
        const fileSystem = await saved();
        const done = seen(async () => {
          await run(chosen, fileSystem);
          return loaded(outOf(way), fileSystem);
        });
        expect(await done, way).toEqual(wanted);
      }
      const { exclude: _, dtype: __, map: ___, ...both } = chosen;
      if (typeof expected(both) === "string") return;
      const diff = await diffCheckpoints("/all", "/all", { ...both, fileSystem: whole });
      expect([diff.equal, diff.tensors]).toEqual([true, (expected(both) as Held).length]);
    }),
    { seed: 3, numRuns: 30 },
  );
});
