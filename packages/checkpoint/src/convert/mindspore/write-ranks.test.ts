import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { randomBytes, scratchFolder } from "../../../testing/fixtures";
import type { Split } from "../../layout/layout";
import { loadCheckpoint } from "../../operations";
import { openSource } from "../../read/open";
import { saveCheckpoint } from "../../save/save";
import { convertCheckpoint } from "../convert";
import { ranksOfJob } from "./write-ranks";

const scratch = scratchFolder();
const at = (name: string): string => join(scratch.path, name);

const TENSORS = Object.fromEntries(
  (
    [
      ["fc.weight", [48, 5]],
      ["fc.bias", [7]],
      ["even", [24]],
    ] as [string, number[]][]
  ).flatMap(([name, shape], i) => {
    const bytes = shape.reduce((a, b) => a * b, 4);
    const part = (seed: number) => ({ dtype: "F32", shape, data: randomBytes(bytes, seed) });
    return [
      [name, part(i)],
      [`${name}.exp_avg`, part(i + 10)],
      [`${name}.exp_avg_sq`, part(i + 20)],
    ];
  }),
);

const save = () =>
  saveCheckpoint(at("run"), { step: 42, tensors: TENSORS, values: { epoch: 3, note: "hé", nested: { a: [1] } } });

async function contents(path: string) {
  const { tensors, values, step } = await loadCheckpoint(path, { as: "plain" });
  return {
    tensors: Object.fromEntries(
      Object.entries(tensors)
        .map(([name, { data, shape }]) => [name, { data, shape }])
        .sort(),
    ),
    values,
    step,
  };
}

const files = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith(".ckpt")).sort();

describe("files of MindSpore's ranks", () => {
  it("8 ranks, 6 ranks and 8 again: every byte of every file, values and step", async () => {
    await save();
    await convertCheckpoint(at("run"), at("eight"), { to: "ckpt", ranks: 8 });
    await convertCheckpoint(at("eight"), at("six"), { to: "ckpt", ranks: 6, crc: true });
    await convertCheckpoint(at("six"), at("again"), { to: "ckpt", ranks: 8 });
    expect(files(at("eight"))).toEqual([
      ...Array.from({ length: 8 }, (_, i) => `rank_${i}/opt-0_42.ckpt`),
      "strategy/ckpt_strategy.ckpt",
    ]);
    for (const file of files(at("eight"))) {
      expect(readFileSync(join(at("again"), file)).equals(readFileSync(join(at("eight"), file)))).toBe(true);
    }
    const source = await openSource(at("six"));
    const strategy = readFileSync(at("six/strategy/ckpt_strategy.ckpt"), "latin1");
    expect([...source.tensors.keys()].filter((name) => !strategy.includes(name))).toEqual([]);
    expect(source.tensors.get("moment1.fc.weight")!.boxes).toHaveLength(6);
    expect(source.tensors.get("fc.bias")!.boxes).toHaveLength(1);
    await source.close();
    await convertCheckpoint(at("six"), at("back"), { to: "checkpoint" });
    const names = Object.fromEntries(
      Object.entries(TENSORS)
        .map(([name, { data, shape }]) => [name, { data, shape }])
        .sort(),
    );
    expect(await contents(at("back"))).toEqual({
      tensors: names,
      step: 42,
      values: { epoch: 3, note: "hé", nested: { a: [1] } },
    });
  });

  it.each<[string, Split[]]>([
    ["neighbours", [["a", "b"], null]],
    ["neighbours, the last ones", [null, ["b", "c"]]],
    ["all", [["a", "b", "c"]]],
    ["neighbours beside another", [["b", "c"], "a"]],
    ["ones in the other order", [["b", "a"], null]],
    ["ones apart", [["a", "c"], "b"]],
    ["ones in the other order, the last beside neighbours", [["b", "c", "a"]]],
  ])("several axes may split a dimension: %s", async (_, split) => {
    const x = { dtype: "F32", shape: [24, 24], data: randomBytes(4 * 24 * 24, 1) };
    await saveCheckpoint(at("square"), { step: 1, tensors: { x } });
    const layout = { mesh: { shape: [2, 3, 2], axes: ["a", "b", "c"] }, tensors: { x: split } };
    await convertCheckpoint(at("square"), at("ranks"), { to: "ckpt", layout });
    expect((await contents(at("ranks"))).tensors.x).toEqual({ data: x.data, shape: x.shape });
    const one = async (rank: number) => (await contents(at(`ranks/rank_${rank}/opt-0_1.ckpt`))).tensors.x;
    const held = (rank: number) => loadCheckpoint(at("square"), { layout, rank, as: "plain" });
    for (const rank of [0, 4, 5, 11]) expect((await one(rank))!.data).toEqual((await held(rank)).tensors.x!.data);
  });

  it("jobs share the ranks of one folder, in any order, to the same bytes", async () => {
    await save();
    const layout = {
      mesh: { shape: [2, 3], axes: ["d", "m"] },
      tensors: { "fc.weight": ["m", null], even: ["d"], "*": "replicate" as const },
    };
    await convertCheckpoint(at("run"), at("whole"), { to: "ckpt", layout });
    for (const i of [3, 1, 2, 4]) await convertCheckpoint(at("run"), at("jobs"), { to: "ckpt", layout, job: [i, 4] });
    expect(files(at("jobs"))).toEqual(files(at("whole")));
    for (const file of files(at("whole"))) {
      expect(readFileSync(join(at("jobs"), file)).equals(readFileSync(join(at("whole"), file)))).toBe(true);
    }
    const source = await openSource(at("jobs"));
    expect(source.tensors.get("moment2.fc.weight")!.boxes.map(({ size }) => size)).toEqual([
      [16, 5],
      [16, 5],
      [16, 5],
    ]);
    await source.close();
    await expectCode("DUPLICATE", convertCheckpoint(at("run"), at("jobs"), { to: "ckpt", layout, job: [2, 4] }));
  });

  it.each([
    [
      7,
      3,
      [
        [0, 1, 2],
        [3, 4],
        [5, 6],
      ],
    ],
    [2, 4, [[0], [], [1], []]],
  ] as [number, number, number[][]][])("%d ranks in %d jobs: every rank once", (ranks, n, expected) => {
    expect(Array.from({ length: n }, (_, i) => ranksOfJob([i + 1, n], ranks))).toEqual(expected);
  });

  it.each([
    ["BAD_ARGUMENT", { ranks: 0 }],
    ["BAD_ARGUMENT", { ranks: 2, job: [0, 2] }],
    ["BAD_ARGUMENT", { job: [1, 2] }],
    ["BAD_ARGUMENT", { ranks: 2, layout: { mesh: { shape: [3], axes: ["x"] }, tensors: { "*": "replicate" } } }],
    ["UNSUPPORTED", { layout: { mesh: { shape: [5], axes: ["x"] }, tensors: { "fc.bias": ["x"], "*": "replicate" } } }],
    [
      "UNSUPPORTED",
      {
        layout: {
          mesh: { shape: [1, 2, 5], axes: ["x", "y", "z"] },
          tensors: { "fc.weight": [null, ["z", "x"]], "*": "replicate" },
        },
      },
    ],
    [
      "UNSUPPORTED",
      { layout: { mesh: { shape: [5, 2], axes: ["x", "y"] }, tensors: { even: [["x", "y"]], "*": "replicate" } } },
    ],
  ] as const)("rejects (%s) %j, and leaves nothing", async (code, options) => {
    await save();
    await expectCode(code, convertCheckpoint(at("run"), at("out"), { to: "ckpt", ...(options as object) }));
    expect(existsSync(at("out"))).toBe(false);
  });

  it("one file keeps texts, values and the step, too", async () => {
    await save();
    await convertCheckpoint(at("run"), at("a.ckpt"), { to: "ckpt", crc: true });
    const source = await openSource(at("a.ckpt"));
    expect(source.values).toEqual({ note: "hé", epoch: 3, nested: { a: [1] } });
    expect(source.step).toBe(42);
    await source.close();
  });
});
