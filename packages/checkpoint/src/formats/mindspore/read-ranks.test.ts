import { describe, expect, it } from "vitest";
import { memoryFiles } from "../../../testing/disks/memory-files";
import { expectCode } from "../../../testing/expect-code";
import { floats, type MadeLayout, mindsporeFile, strategyFile } from "../../../testing/files/made-files";
import { readFloats } from "../../../testing/read-tensor";
import type { ImportOptions, TensorSource } from "../../format/source";
import { defaultLayout } from "../../layout/layout";
import { openForeign } from "../registry";

type Held = Record<string, [shape: number[], ...values: number[]]>;

/** `rank_<n>/net-1_<step>.ckpt` for each list of tensors, and strategy files. */
function run(
  ranks: readonly Held[],
  strategies: Record<string, Record<string, MadeLayout>> = {},
  { name = "net-1_32.ckpt" } = {},
): Record<string, Uint8Array> {
  const files = ranks.map((held, rank) => {
    const values = Object.entries(held).map(
      ([tag, [shape, ...data]]) => [tag, shape, "Float32", floats(...data)] as const,
    );
    return [`rank_${rank}/${name}`, mindsporeFile(values)];
  });
  const said = Object.entries(strategies).map(([file, layouts]) => [file, strategyFile(layouts)]);
  return Object.fromEntries([...files, ...said]);
}

const open = (files: Record<string, Uint8Array>, options: ImportOptions = {}): Promise<TensorSource> =>
  openForeign("/root", memoryFiles(files), options);
const two = { "ckpt_strategy.ckpt": { w: { devices: [2], map: [0] } } };

describe("ranks of MindSpore", () => {
  it("a tensor that nothing names must be equal on all ranks, or its read names it and the ranks", async () => {
    const held = (values: number[]): Held => ({ w: [[1], 1], same: [[2], 5, 6], other: [[values.length], ...values] });
    const source = await open(run([held([1, 2]), held([1, 2])], two));
    expect(await readFloats(source, "other")).toEqual([1, 2]);
    const apart = await open(run([held([1, 2]), held([1, 3])], two));
    expect(await readFloats(apart, "same")).toEqual([5, 6]);
    expect(await expectCode("BAD_STATE", readFloats(apart, "other"))).toMatch(/ranks 0 and 1 hold "other"/);
    await expectCode("BAD_STATE", open(run([held([1, 2]), held([1])], two)));
  });

  it("replicas are compared to their last byte", async () => {
    const long = (last: number): Held => ({ w: [[1], 1], b: [[40_000], ...new Array<number>(39_999).fill(1), last] });
    const source = await open(run([long(1), long(2)], two));
    await expectCode("BAD_STATE", readFloats(source, "b"));
  });

  it("without a strategy a source layout says it: the tutorial's 2x2 mesh, states with their parameter, uneven parts", async () => {
    const sourceLayout = {
      mesh: { shape: [2, 2], axes: ["data", "model"] },
      tensors: { "fc.weight": ["data", "model"], "*": "replicate" as const },
    };
    const held = (row: number, column: number): Held => {
      const part = [1, 2, 3, 4, 5, 6, 7, 8].slice(4 * row + 2 * column).slice(0, 2);
      return {
        "fc.weight": [[1, 2], ...part],
        "moments.fc.weight": [[1, 2], ...part.map((n) => n / 2)],
        lr: [[], 0.5],
      };
    };
    const files = run([held(0, 0), held(0, 1), held(1, 0), held(1, 1)]);
    await expectCode("MISSING", open(files));
    const source = await open(files, { sourceLayout });
    expect(source.tensors.get("fc.weight")!.shape).toEqual([2, 4]);
    expect(await readFloats(source, "fc.weight")).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await readFloats(source, "moments.fc.weight")).toEqual([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]);
    const uneven = run([{ w: [[2], 1, 2] }, { w: [[1], 3] }]);
    expect(await readFloats(await open(uneven, { sourceLayout: defaultLayout(2) }), "w")).toEqual([1, 2, 3]);
    await expectCode("BAD_SHAPE", open(run([{ w: [[1], 1] }, { w: [[2], 2, 3] }]), { sourceLayout: defaultLayout(2) }));
    await expectCode("BAD_ARGUMENT", open(uneven, { sourceLayout: defaultLayout(3) }));
  });

  it("stages of a pipeline merge: each parameter by its stage's devices, what all hold once", async () => {
    const strategies = {
      "ckpt_strategy_rank_0.ckpt": { a: { devices: [2], map: [0] }, shared: { devices: [2], map: [0] } },
      "ckpt_strategy_rank_2.ckpt": { b: { devices: [2], map: [-1, 0] } },
    };
    const first = (n: number): Held => ({ a: [[1], n], "moments.a": [[1], 10 * n], shared: [[1], n], step: [[], 3] });
    const second = (n: number): Held => ({ b: [[2, 1], n, n + 2], shared: [[1], n], step: [[], 3] });
    const source = await open(run([first(1), first(2), second(1), second(2)], strategies));
    expect(await readFloats(source, "a")).toEqual([1, 2]);
    expect(await readFloats(source, "moments.a")).toEqual([10, 20]);
    expect(await readFloats(source, "b")).toEqual([1, 2, 3, 4]);
    expect(await readFloats(source, "shared")).toEqual([1, 2]);
    expect(await readFloats(source, "step")).toEqual([3]);
    const drifted = await open(run([first(1), first(2), second(1), second(5)], strategies));
    await expectCode("BAD_STATE", readFloats(drifted, "shared"));
  });

  it.each<[string, string, Record<string, Uint8Array>, ImportOptions]>([
    [
      "strategies that contradict each other",
      "BAD_STATE",
      run([{ w: [[1], 1] }, { w: [[1], 2] }], { ...two, "strategy_b.ckpt": { w: { devices: [2], map: [-1] } } }),
      {},
    ],
    [
      "devices that do not divide the ranks",
      "MISSING",
      run([{ w: [[1], 1] }, { w: [[1], 2] }, { w: [[1], 3] }], two),
      {},
    ],
    ["a step that is not there", "MISSING", run([{ w: [[1], 1] }, { w: [[1], 2] }], two), { step: 7 }],
  ])("rejects %s", async (_, code, files, options) => {
    await expectCode(code as never, open(files, options));
  });

  it("the newest step by numbers, or the one asked for", async () => {
    const files = {
      ...run([{ w: [[1], 9] }, { w: [[1], 9] }], two, { name: "net-1_9.ckpt" }),
      ...run([{ w: [[1], 1] }, { w: [[1], 2] }], two),
    };
    expect((await open(files)).step).toBe(32);
    const older = await open(files, { step: 9 });
    expect([older.step, await readFloats(older, "w")]).toEqual([9, [9, 9]]);
  });
});

describe("a file of MindSpore", () => {
  const file = (values: Parameters<typeof mindsporeFile>[0], name = "net-1_32.ckpt"): Promise<TensorSource> =>
    openForeign(`/root/${name}`, memoryFiles({ [name]: mindsporeFile(values) }));

  it("keeps the step of its name", async () => {
    expect((await file([["w", [1], "Float32", floats(1)]])).step).toBe(32);
    expect((await file([["w", [1], "Float32", floats(1)]], "net.ckpt")).step).toBeUndefined();
  });

  it("has scalars without dims and with the single dim 0; [1] and empty tensors are what they say", async () => {
    const source = await file([
      ["new", [], "Float32", floats(1)],
      ["old", [0], "Float32", floats(2)],
      ["one", [1], "Float32", floats(3)],
      ["none", [0], "Float32", floats()],
    ]);
    const shapes = [...source.tensors.values()].map(({ name, shape }) => [name, shape]);
    expect(shapes).toEqual([
      ["new", []],
      ["old", []],
      ["one", [1]],
      ["none", [0]],
    ]);
  });

  it("leaves the rest readable where a type is not known", async () => {
    const source = await file([
      ["w", [1], "Float32", floats(1)],
      ["packed", [2], "Int4", floats(1)],
    ]);
    expect(await readFloats(source, "w")).toEqual([1]);
    expect([...source.unreadable!.keys()]).toEqual(["packed"]);
  });

  it("names no more parameters than its size makes likely", async () => {
    const many = Array.from({ length: 105_000 }, (_, i) => [`${i}`, [0], "Int8", new Uint8Array(0)] as const);
    await expectCode("REFUSED", file(many));
    expect((await file(many.slice(0, 1000))).tensors.size).toBe(1000);
  });
});
