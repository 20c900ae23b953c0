/** Ledgers of runs: equal for equal bits, and a flipped bit is found by step and name. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { init, tensor } from "@opt/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scratchFolder } from "../../testing/fixtures";
import { run } from "../../testing/run-command";
import { memoryFileSystem } from "../stores/memory";
import { compareLedgers, type LedgerLine } from "./compare";
import { ledger } from "./ledger";

await init("js");
const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);

const flip = (x: Float32Array) => {
  new Uint8Array(x.buffer)[5]! ^= 1;
  return x;
};

describe("ledger", () => {
  it("finds a flipped bit by step and name", async () => {
    const [a, b] = [await ledger(), await ledger()];
    for (let step = 1; step <= 3; step++) {
      const values = () => Float32Array.of(step, 2 * step);
      const w = step === 2 ? flip(values()) : values();
      await a.append(step, { w: tensor(values()), v: tensor([step]) });
      await b.append(step, { w: { dtype: "f32", shape: [2], data: w }, v: tensor([step]) });
    }
    expect(compareLedgers(a.lines, a.lines)).toEqual({ steps: 3, first: null });
    expect(compareLedgers(a.lines, b.lines)).toEqual({ steps: 3, first: { step: 2, tensors: ["w"] } });
  });

  it("compares plain values, too, and keeps them in a file", async () => {
    const [a, b] = [await ledger(at("values.jsonl")), await ledger()];
    for (const [book, lr] of [
      [a, 0.1],
      [b, 0.2],
    ] as const)
      for (const step of [1, 2]) {
        const values = { lr: step === 1 ? 1 : lr, mode: "train" };
        await book.append(step, { w: tensor([1]) }, values);
      }
    const { lines } = await ledger(at("values.jsonl"));
    expect(lines[1]).toMatchObject({ step: 2, values: { lr: 0.1, mode: "train" } });
    expect(compareLedgers(lines, b.lines)).toEqual({ steps: 2, first: { step: 2, tensors: ["lr"] } });
  });

  it("finds the first step in which anything differs, on either side", () => {
    const some = fc.dictionary(fc.constantFrom("w", "v"), fc.constantFrom("0", "1"), { noNullPrototype: true });
    const line = fc.record({ tensors: some, values: fc.option(some, { nil: undefined }) });
    const drawn = fc.array(fc.option(line), { minLength: 1, maxLength: 3 });
    const linesOf = (all: readonly ({ tensors: object; values: object | undefined } | null)[]) =>
      all.flatMap((each, step) => (each === null ? [] : [{ ...each, step }])) as LedgerLine[];
    const flat = ({ tensors, values }: LedgerLine): Record<string, unknown> => ({ ...tensors, ...values });
    const check = fc.property(drawn, drawn, (one, other) => {
      const [a, b] = [linesOf(one), linesOf(other)];
      const shared = a.flatMap((line) => b.filter(({ step }) => step === line.step).map((its) => [line, its] as const));
      const found = shared.map(([line, its]) => ({
        step: line.step,
        tensors: ["w", "v"].filter((name) => flat(line)[name] !== flat(its)[name]),
      }));
      const result = compareLedgers(a, b);
      const first = found.find(({ tensors }) => tensors.length > 0) ?? null;
      expect({
        ...result,
        first: result.first && { ...result.first, tensors: result.first.tensors.toSorted() },
      }).toEqual({ steps: shared.length, first: first && { ...first, tensors: first.tensors.toSorted() } });
    });
    fc.assert(check, { seed: 1, numRuns: 200 });
  });

  it("tells shapes, dtypes and signs of zero apart", async () => {
    const book = await ledger();
    const of = async (x: Parameters<typeof book.append>[1][string]) => (await book.append(0, { x })).tensors.x;
    const all = [tensor([0, 0]), tensor([[0, 0]]), tensor([0, -0]), tensor([0, 0], { dtype: "i32" })];
    expect(new Set(await Promise.all(all.map(of))).size).toBe(4);
  });

  it.each(["run", "a.jsonl"])("goes on in %s, where a resumed run replaces steps", async (path) => {
    const first = await ledger(at(path));
    for (const step of [1, 2, 3]) await first.append(step, { w: tensor([step]) });
    const resumed = await ledger(at(path));
    expect(resumed.lines).toEqual(first.lines);
    await resumed.append(3, { w: tensor([7]) });
    const { lines } = await ledger(at(path));
    expect(compareLedgers(first.lines, lines)).toEqual({ steps: 3, first: { step: 3, tensors: ["w"] } });
  });

  it("works in any file system, and rejects what is not a ledger", async () => {
    const fileSystem = memoryFileSystem();
    await (await ledger("run", { fileSystem })).append(1, { w: tensor([1]) });
    expect((await ledger("run", { fileSystem })).lines).toHaveLength(1);
    writeFileSync(at("bad.jsonl"), '{"step":1,"tensors":{}}\n{"step":"x"}\n');
    await expect(ledger(at("bad.jsonl"))).rejects.toMatchObject({ code: "CORRUPT", message: /line 2/ });
    await expect(ledger("run", { filesystem: fileSystem } as never)).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
    const book = await ledger();
    await expect(book.append(-1, {})).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
    await expect(book.append(1, { w: 3 as never })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
    expect(book.lines).toEqual([]);
  });
});

describe("opt-checkpoint ledger", () => {
  it("prints one, and compares two: exit 1 names the first step and its tensors", async () => {
    const [a, b] = [await ledger(at("a.jsonl")), await ledger(at("b.jsonl"))];
    for (const step of [1, 2]) {
      await a.append(step, { w: tensor([step]) });
      await b.append(step, { w: tensor([step * step]) });
    }
    const { code, out } = await run("ledger", at("a.jsonl"));
    expect([code, out.split("\n").length]).toEqual([0, 5]);
    expect(await run("ledger", at("a.jsonl"), at("a.jsonl"))).toMatchObject({ code: 0, out: "equal: 2 steps\n" });
    const differing = await run("ledger", at("a.jsonl"), at("b.jsonl"));
    expect(differing).toMatchObject({ code: 1, out: "step 2 differs: w\n" });
    expect((await run("ledger", at("none.jsonl"))).code).toBe(1);
  });
});
