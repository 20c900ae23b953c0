/** What is rejected by name before anything happens: misspelt options, invalid paths, ranks of unknown worlds. */
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { diffCheckpoints } from "../compare/diff";
import { convertCheckpoint } from "../convert/convert";
import { loadCheckpoint } from "../operations";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import { saveCheckpoint } from "../save/save";
import { cleanCheckpoints } from "../save/step/clean";
import { inspectCheckpoint } from "./inspect";
import { verifyCheckpoint } from "./verify";

const saved = new MemoryFileSystem();

type Call = (path: never, options: never) => Promise<unknown>;

const calls: [string, Call][] = [
  ["saveCheckpoint", (path, options) => saveCheckpoint(path, { step: 1, tensors: {} }, options)],
  ["loadCheckpoint", loadCheckpoint as Call],
  ["mergeCheckpoint", (path, options) => mergeCheckpoint(path, "/out", options)],
  ["reshardCheckpoint", (path, options) => reshardCheckpoint(path, "/out", options)],
  ["verifyCheckpoint", verifyCheckpoint as Call],
  ["inspectCheckpoint", inspectCheckpoint as Call],
  ["diffCheckpoints", (path, options) => diffCheckpoints(path, path, options)],
  ["cleanCheckpoints", cleanCheckpoints as Call],
];

describe.each(calls)("%s", (_, call) => {
  it.each<[unknown, RegExp]>([
    [undefined, /path must be a string, got undefined/],
    [new URL("file:///r"), /fileURLToPath/],
    ["", /path must be a string, got ""/],
  ])("rejects the path %s", async (path, message) =>
    expect(await expectCode("BAD_ARGUMENT", call(path as never, {} as never))).toMatch(message),
  );

  it.each([{}, null, "memory"])("rejects the store %j", async (fileSystem) =>
    expect(await expectCode("BAD_ARGUMENT", call("/r" as never, { fileSystem } as never))).toMatch(/^\[fileSystem\]/),
  );

  it("rejects a misspelt option", async () =>
    expect(await expectCode("BAD_ARGUMENT", call("/r" as never, { fileSytem: 1 } as never))).toMatch(
      /Did you mean fileSystem/,
    ));
});

it("diffCheckpoints rejects a name that neither side has: it compared nothing, and found it equal", async () => {
  const fileSystem = new MemoryFileSystem();
  const w = { dtype: "f32", shape: [1], data: Float32Array.of(1) };
  await saveCheckpoint("/a", { step: 1, tensors: { w } }, { fileSystem });
  await saveCheckpoint("/b", { step: 1, tensors: { w, "w.exp_avg": w } }, { fileSystem });
  const diff = (...names: string[]) => diffCheckpoints("/a", "/b", { fileSystem, names });
  expect(await expectCode("BAD_ARGUMENT", diff("w", "weight"))).toMatch(/"weight" matches no tensor.*w, w.exp_avg/);
  expect(await diff("w")).toMatchObject({ equal: true, tensors: 1 });
  expect((await diff("*.exp_avg")).differences).toMatchObject([{ kind: "missing in a" }]);
  const renamed = (rename: Record<string, string>) => diffCheckpoints("/a", "/b", { fileSystem, rename, names: ["v"] });
  expect(await renamed({ w: "v" })).toMatchObject({ equal: true, tensors: 1 });
  expect((await renamed({ "w.exp_avg": "v" })).differences).toMatchObject([{ kind: "missing in a" }]);
  expect(await expectCode("BAD_ARGUMENT", renamed({ we: "v" }))).toMatch(/^\[rename\].* The nearest names are w, /);
});

it("a rank without a world is rejected, not given everything", async () => {
  const fileSystem = new MemoryFileSystem();
  await expectCode("BAD_ARGUMENT", loadCheckpoint("/r", { rank: 1, fileSystem }));
});

it.each<[string, (outFileSystem: never) => Promise<unknown>]>([
  ["mergeCheckpoint", (outFileSystem) => mergeCheckpoint("/r", "/out", { fileSystem: saved, outFileSystem })],
  [
    "reshardCheckpoint",
    (outFileSystem) => reshardCheckpoint("/r", "/out", { fileSystem: saved, outFileSystem, ranks: 2 }),
  ],
  [
    "convertCheckpoint",
    (outFileSystem) => convertCheckpoint("/r", "/out", { fileSystem: saved, outFileSystem, to: "safetensors" }),
  ],
])("%s rejects an invalid store for what it writes", async (_, call) => {
  const w = { dtype: "f32", shape: [2], data: Float32Array.of(1, 2) };
  await saveCheckpoint("/r", { step: 1, tensors: { w } }, { fileSystem: saved, overwrite: true });
  expect(await expectCode("BAD_ARGUMENT", call({} as never))).toMatch(/^\[fileSystem\]/);
});

it.each<[string, object]>([
  ["a number for a slice", { slices: { w: 3 } }],
  ["a pair for a slice", { slices: { w: [0, 1] } }],
  ["half a pair", { slices: { w: [[0]] } }],
  ["an invalid store", { fileSystem: {} }],
])("loadCheckpoint rejects %s", async (_, options) => {
  const fileSystem = new MemoryFileSystem();
  const w = { dtype: "f32", shape: [2], data: Float32Array.of(1, 2) };
  await saveCheckpoint("/r", { step: 1, tensors: { w } }, { fileSystem });
  await expectCode("BAD_ARGUMENT", loadCheckpoint("/r", { fileSystem, ...options }));
  await expectCode("BAD_ARGUMENT", loadCheckpoint("/r", { fileSystem, dtype: { "nope*": "bf16" } }));
});
