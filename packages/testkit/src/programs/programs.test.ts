// The machinery of random programs: it can fail, and shows the smallest program when it does.
import { init, type Tensor, tensor } from "@opt/core";
import { describe, expect, it } from "vitest";
import { generate } from "./generate/generate";
import { generateSmall } from "./generate/small";
import { canInterpret } from "./interpret/interpret";
import { examineSmall } from "./interpreted";
import { listing } from "./listing";
import { examine } from "./oracle";
import { type Program, statementsOf } from "./program";
import { smallest } from "./shrink";

const device = await init("js");

describe("programs", () => {
  it("are the same for the same seed, and plain data", () => {
    for (const seed of [1, 2, 3]) expect(JSON.parse(JSON.stringify(generate(seed)))).toEqual(generate(seed));
    expect(generate(1)).not.toEqual({ ...generate(2), seed: 1 });
  });

  it("have every kind of statement and every dtype among 1,000", () => {
    const programs = Array.from({ length: 1000 }, (_, seed) => generate(seed));
    const kinds = new Set(programs.flatMap(statementsOf).map((statement) => statement.do));
    expect([...kinds].sort().join(" ")).toBe(
      "addGroup average averaged backward clip constant dispose freeze gradient keep load noGrad op option random reset save schedule set stale step tidy train unscale update when zeroGrad",
    );
    const optimizers = new Set(programs.flatMap((program) => program.optimizers.map(({ kind }) => kind)));
    expect([...optimizers].sort().join(" ")).toBe("Adam AdamW Adamax Muon NAdam RAdam RMSprop SGD");
    const layers = new Set(programs.flatMap((program) => program.layers.map((layer) => layer.kind)));
    expect([...layers].sort().join(" ")).toBe(
      "BatchNorm1d BatchNorm2d Conv1d Conv2d ConvTranspose2d Dropout Embedding GRU GroupNorm LSTM LayerNorm Linear MultiheadAttention RMSNorm",
    );
    const dtypes = new Set(programs.flatMap(({ leaves }) => leaves.map(({ dtype }) => dtype)));
    expect([...dtypes].sort()).toEqual(["bf16", "bool", "f16", "f32", "f64", "i32", "u8"]);
  });

  it("have every theme's statements among 1,000 small ones, all of which can be interpreted", () => {
    const programs = Array.from({ length: 1000 }, (_, seed) => generateSmall(seed));
    expect(programs.filter((program) => !canInterpret(program))).toEqual([]);
    const kinds = new Set(programs.flatMap(statementsOf).map((statement) => statement.do));
    expect([...kinds].sort().join(" ")).toBe(
      "assign backward clip follow freezeLayer grad gradient move noGrad onForward onGradient op property replace set step tie train when writePart zeroGrad",
    );
    for (const { prelude, bodies } of programs)
      for (const one of [prelude, bodies]) expect(JSON.parse(JSON.stringify(one))).toEqual(one);
  });

  it("are shown as TypeScript", () => {
    expect(listing(SMALL)).toBe(`const w = parameter(grid(1), { shape: [2], dtype: "f32", name: "w" });
const body0 = compile(() => {
  const a = w.mul(w);
  const b = a.exp();
  const loss = a.sum();
  loss.backward();
  return { loss };
}, { check: "never" });
body0();
// resumed runs are saved and built anew here; loaded: model
body0();`);
  });
});

const SMALL: Program = {
  seed: 0,
  leaves: [{ id: "w", kind: "parameter", shape: [2], dtype: "f32", fill: { kind: "grid", seed: 1 } }],
  layers: [],
  optimizers: [],
  averages: [],
  scaler: null,
  prelude: [],
  bodies: [
    {
      args: [],
      statements: [
        { do: "op", id: "a", op: "mul", of: ["w", "w"] },
        { do: "op", id: "b", op: "exp", of: ["a"] },
        { do: "op", id: "loss", op: "sum", of: ["a"] },
        { do: "backward", of: "loss", gradient: null },
      ],
      results: ["loss"],
    },
  ],
  rounds: [
    { before: [], body: 0, args: {} },
    { before: [], body: 0, args: {} },
  ],
  resume: { round: 1, order: ["model"] },
  mayReject: [],
  compiles: true,
  check: "never",
};

describe("the interpretation", () => {
  const setup = { devices: [device], optimizers: {} };
  const linear = (bias: number) =>
    class {
      weight = tensor([[1, 2]]);
      forward = (x: Tensor) => x.matmul(this.weight, { transposeB: true }).add(bias);
      train() {}
      freeze() {}
      onForward() {}
      parameters = () => [this.weight];
    };
  const fill = { kind: "grid", seed: 3 } as const;
  const program: Program = {
    ...SMALL,
    layers: [{ id: "n", kind: "Linear", sizes: [2, 1], options: { bias: false }, dtype: "f32" }],
    leaves: [
      { id: "x", kind: "data", shape: [3, 2], dtype: "f32", fill },
      { id: "w", kind: "data", shape: [1, 2], dtype: "f32", fill, of: { layer: "n", name: "weight" } },
    ],
    bodies: [
      {
        args: [],
        statements: [{ do: "op", id: "y", op: "Linear", of: ["x", "w"], options: { layer: "n" } }],
        results: ["y"],
      },
    ],
  };

  it("agrees with what is right", async () => {
    const layers = { Linear: linear(0) };
    expect((await examineSmall(program, { ...setup, layers })).failure).toBeNull();
  });

  it("sees a layer that is wrong by little", async () => {
    const layers = { Linear: linear(1e-3) };
    expect((await examineSmall(program, { ...setup, layers })).failure?.rule).toBe("js = interpreted");
  });

  it("sees what is not rejected, and what is", async () => {
    const leaves = program.leaves.with(0, { ...program.leaves[0]!, shape: [3, 3] });
    const wide = { ...program, leaves };
    const layers = { Linear: linear(0) };
    expect((await examineSmall(wide, { ...setup, layers })).failure).toBeNull();
    const taking = class extends layers.Linear {
      override forward = () => tensor([[0], [0], [0]]);
    };
    expect((await examineSmall(wide, { ...setup, layers: { Linear: taking } })).failure?.rule).toBe(
      "js rejects what must be rejected",
    );
  });
});

describe("the oracle", () => {
  const optimizers = {};

  it("lets a right program pass", async () => {
    expect((await examine(SMALL, { devices: [device], optimizers, layers: {} })).failure).toBeNull();
  });

  it("does not take a rejection that nothing explains", async () => {
    const use: Program = {
      ...SMALL,
      bodies: [
        {
          args: [],
          statements: [
            { do: "dispose", of: "w" },
            { do: "op", id: "a", op: "exp", of: ["w"] },
          ],
          results: [],
        },
      ],
    };
    expect((await examine(use, { devices: [device], optimizers, layers: {} })).failure?.rule).toBe(
      "js rejects: DISPOSED",
    );
    const expected = { ...use, mayReject: ["DISPOSED"] as const };
    expect(await examine(expected, { devices: [device], optimizers, layers: {} })).toMatchObject({
      failure: null,
      rejected: "DISPOSED",
    });
  });

  it("knows how far drawn float16 numbers and gradients through casts are rounded", async () => {
    const body = (...statements: Program["bodies"][number]["statements"]): Program => ({
      ...SMALL,
      leaves: [{ id: "w", kind: "parameter", shape: [17, 8, 8], dtype: "f64", fill: { kind: "grid", seed: 78598 } }],
      bodies: [{ args: [], statements, results: ["loss"] }],
    });
    const drawn = body(
      { do: "random", id: "a", shape: [8], dtype: "f16", normal: false },
      { do: "op", id: "loss", op: "sum", of: ["a"] },
    );
    const cast = body(
      { do: "op", id: "a", op: "to", of: ["w"], options: { dtype: "f32", from: "f64" } },
      { do: "op", id: "b", op: "sub", of: ["a", "w"] },
      { do: "op", id: "loss", op: "mean", of: ["b"] },
      { do: "backward", of: "loss", gradient: null },
    );
    for (const one of [drawn, cast]) {
      expect((await examine(one, { devices: [device], optimizers, layers: {} })).failure).toBeNull();
    }
  });

  it("sees that backward rejects what was overwritten", async () => {
    const factor = { id: "x", kind: "data", shape: [2], dtype: "f32", fill: { kind: "grid", seed: 2 } } as const;
    const stale = (dtype: "f32" | "bf16"): Program => ({
      ...SMALL,
      leaves: [...SMALL.leaves, factor].map((leaf) => ({ ...leaf, dtype })),
      bodies: [{ args: [], statements: [{ do: "stale", of: "w", by: "x" }], results: [] }],
    });
    const found = async (program: Program) =>
      (await examine({ ...program, seed: 1 }, { devices: [device], optimizers, layers: {} })).failure?.rule;
    expect(await found(stale("f32"))).toBeUndefined();
    // 16-bit factors are saved as they were widened, which nothing overwrites.
    expect(await found(stale("bf16"))).toBe("js differentiates what was overwritten");
  });

  it("finds the smallest program that fails", async () => {
    const hasNeg = (one: Program) =>
      statementsOf(one).some((statement) => statement.do === "op" && statement.op === "neg");
    const seed = Array.from({ length: 50 }, (_, i) => i).find((i) => hasNeg(generate(i)))!;
    const least = await smallest(generate(seed), async (smaller) => hasNeg(smaller));
    expect(statementsOf(least)).toHaveLength(1);
    expect(least.leaves).toHaveLength(1);
  });
});
