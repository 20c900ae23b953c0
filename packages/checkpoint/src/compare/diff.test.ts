/** Two checkpoints whose systems name tensors differently. */
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { torchFile } from "../../testing/files/torch-files";
import { scratchFolder } from "../../testing/fixtures";
import { run } from "../../testing/run-command";
import { convertCheckpoint, diffCheckpoints, reshardCheckpoint } from "../operations";
import { saveCheckpoint } from "../save/save";
import { memoryFileSystem } from "../stores/memory";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
const tensor = { dtype: "f32", shape: [2], data: new Float32Array([1, 2]) };

it.each(["flat", "nested", "groups.pt"])("%s equals what it was cut into, under the names there", async (name) => {
  await reshardCheckpoint(torchFile(name), at("cut"), { ranks: 3, parameterOrder: "model", overwrite: true });
  for (const pair of [
    [torchFile(name), at("cut")],
    [at("cut"), torchFile(name)],
  ] as const)
    expect(await diffCheckpoints(...pair)).toMatchObject({ equal: true, differences: [] });
});

it("a value that differs is told under the name of both", async () => {
  await reshardCheckpoint(torchFile("nested"), at("cut"), { ranks: 2 });
  await convertCheckpoint(at("cut"), at("half"), { to: "checkpoint", dtype: "bf16" });
  const { differences } = await diffCheckpoints(torchFile("nested"), at("half"));
  expect(new Set(differences.map(({ kind }) => kind))).toEqual(new Set(["dtype"]));
});

it.each([
  ["model.", "", "model.*=*"],
  ["", "module.", "module.*=*"],
  ["model.", "net.", "model.*=net.*"],
])("names that begin with %j and with %j: the rename is told, and works", async (a, b, rename) => {
  for (const [file, start] of Object.entries({ a, b }))
    await saveCheckpoint(at(file), { step: 0, tensors: { [`${start}0.w`]: tensor, [`${start}1.w`]: tensor } });
  const { code, out } = await run("diff", at("a"), at("b"));
  expect([code, out]).toEqual([1, expect.stringMatching(/\nno name is in both: try --rename '.*'\n$/)]);
  expect(out).toContain(`'${rename}'`);
  expect((await run("diff", at("a"), at("b"), "--rename", rename)).out).toBe("equal: 2 tensors\n");
});

it("names that have nothing in common: no rename is told", async () => {
  await saveCheckpoint(at("a"), { step: 0, tensors: { "a.x": tensor }, values: { lr: 1, epoch: 2 } });
  await saveCheckpoint(at("b"), { step: 0, tensors: { "b.y": tensor } });
  const { out } = await run("diff", at("a"), at("b"));
  expect(out).toBe("a.x: missing in b\nb.y: missing in a\nplain values that differ (not counted): 2, see --json\n");
});

const numbers = fc.constantFrom(
  0,
  -0,
  1,
  1.25,
  -1.5,
  2,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
);
const tolerances = fc.constantFrom(0, 0.15, 0.2, 0.5);
const ARRAYS = { f32: Float32Array, f64: Float64Array };
const dtypes = fc.constantFrom("f32" as const, "f64" as const);

it("numbers differ where their distance is beyond atol + rtol |b|", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(numbers, numbers), { minLength: 1, maxLength: 6 }),
      ...([tolerances, tolerances, dtypes, dtypes] as const),
      async (pairs, atol, rtol, ...types) => {
        const fileSystem = memoryFileSystem();
        for (const [side, dtype] of types.entries()) {
          const data = new ARRAYS[dtype](pairs.map((pair) => pair[side]!));
          const tensors = { w: { dtype, shape: [pairs.length], data } };
          await saveCheckpoint(`${side}`, { step: 1, tensors }, { fileSystem });
        }
        const isTolerant = atol + rtol > 0;
        const far = pairs.flatMap(([a, b], i) => {
          const isNear = Math.abs(a - b) <= atol + rtol * Math.abs(b) && Number.isFinite(b);
          return Object.is(a, b) || (isTolerant && isNear) ? [] : [i];
        });
        const largest = Math.max(0, ...far.map((i) => Math.abs(pairs[i]![0] - pairs[i]![1])).filter((x) => x >= 0));
        const values = { kind: "values", count: far.length, elements: pairs.length, first: far[0], maxAbs: largest };
        const isOther = types[0] !== types[1] && !isTolerant;
        const expected = isOther ? [{ kind: "dtype" }] : far.length > 0 ? [values] : [];
        const { differences } = await diffCheckpoints("0", "1", { fileSystem, atol, rtol });
        expect(differences).toMatchObject(expected);
        expect(differences.length).toBe(expected.length);
      },
    ),
    { seed: 1, numRuns: 150 },
  );
});
