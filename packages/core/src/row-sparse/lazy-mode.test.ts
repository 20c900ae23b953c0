import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, randn, tensor } from "../create";
import type { Device } from "../device/device";
import { tidy } from "../device/scope";
import { GradScaler } from "../loss-scaling/scaler";
import { gather } from "../ops";
import { clipGradNorm, clipGradValue } from "../optimizer/gradients/clip";
import { l2 } from "../optimizer/gradients/regularizer";
import { Generator } from "../random/generator";
import { functional } from "../stepping/functional";
import type { Tensor } from "../tensor/tensor";
import { gatherSparse } from "./gather-sparse";
import { type RowSparse, rowSparse } from "./row-sparse";

type Options = NonNullable<ConstructorParameters<typeof Momentum>[1]>;
type Run = {
  readonly lookUp?: typeof gather;
  readonly options?: Options;
  readonly dtype?: "f32" | "f64" | "bf16";
  readonly device?: Device;
  /** Which rows each step looks up. */
  readonly batches?: readonly (readonly number[])[];
  /** Done to the gradient before each step. */
  readonly before?: (table: Tensor) => void;
  readonly compiled?: boolean;
};

const [ROWS, WIDTH] = [7, 3];
/** Rows 2 and 5 are there at every step, 2 twice; row 3 never is. */
const BATCHES = [
  [2, 5, 2],
  [5, 2, 2, 0],
  [2, 5, 6, 2, 6],
  [1, 2, 5, 2],
];
const ALWAYS = [2, 5];
/** As many each time, for one trace. */
const EVEN = [
  [2, 5, 2, 0],
  [5, 2, 2, 0],
  [5, 6, 6, 2],
  [1, 2, 5, 2],
  [1, 1, 1, 1],
  [4, 2, 5, 2],
  [5, 2, 6, 0],
];

/** The table after the steps, as words, and its state. */
function train({
  lookUp = gatherSparse,
  options = {},
  dtype = "f32",
  device,
  batches = BATCHES,
  before,
  compiled,
}: Run) {
  const on = device && { device };
  const generator = new Generator(3);
  const table = parameter(randn([ROWS, WIDTH], { generator, ...on }).to(dtype));
  const optimizer = new Momentum([table], { lr: 0.1, averaged: true, ...options });
  const weights = randn([ROWS, WIDTH], { generator, ...on });
  const step = (at: Tensor) => {
    const loss = lookUp(table, at).to("f32").mul(gather(weights, at)).pow(2).sum();
    loss.backward();
    before?.(table);
    optimizer.step();
    optimizer.zeroGrad();
  };
  if (compiled) {
    const run = compile((at: Tensor) => step(at));
    for (const rows of batches) run(tensor(rows as number[], { dtype: "i32", ...on }));
  } else for (const rows of batches) tidy(() => step(tensor(rows as number[], { dtype: "i32", ...on })));
  const state = optimizer.stateDict().state["0"] ?? { step: 0 };
  const tensors = Object.entries({ param: table, ...state }) as [string, Tensor | number][];
  const words = Object.fromEntries(tensors.flatMap(([name, x]) => (typeof x === "number" ? [] : [[name, wordsOf(x)]])));
  return {
    words,
    step: state.step,
    first: wordsOf(parameter(randn([ROWS, WIDTH], { generator: new Generator(3) }).to(dtype))),
  };
}

/** The stored words, by row. */
function wordsOf(x: Tensor): number[][] {
  const bytes = [...x.bytesSync()];
  const length = bytes.length / ROWS;
  return Array.from({ length: ROWS }, (_, row) => bytes.slice(row * length, (row + 1) * length));
}

const rowsIn = (words: Record<string, number[][]>, rows: readonly number[]) =>
  Object.fromEntries(Object.entries(words).map(([name, list]) => [name, rows.map((row) => list[row])]));

describe("lazyMode", () => {
  const lazy = { lazyMode: true };

  it.each(["f32", "f64", "bf16"] as const)(
    "gives rows that are always there the bits of the dense run, in %s",
    (dtype) => {
      const dense = train({ lookUp: gather, dtype });
      const sparse = train({ options: lazy, dtype });
      expect(rowsIn(sparse.words, ALWAYS)).toEqual(rowsIn(dense.words, ALWAYS));
      expect(sparse.step).toBe(4);
    },
  );

  it("leaves other rows and their state alone, and steps them later at the step of all", () => {
    const { words, first } = train({ options: lazy });
    expect(words.param![3]).toEqual(first[3]);
    expect(words.velocity![3]!.every((byte) => byte === 0)).toBe(true);
    const seldom = train({ options: lazy, batches: [[2], [2], [1]] });
    const fresh = train({ options: lazy, batches: [[1]] });
    expect(seldom.words.velocity![1]).toEqual(fresh.words.velocity![1]);
  });

  it.each(["f32", "f64", "bf16"] as const)(
    "is off by default: row-sparse gradients step as dense ones, in %s",
    (dtype) => {
      const options: Options = { clip: { norm: 0.5, value: 0.2 }, regularizer: l2(0.1) };
      expect(train({ dtype, options }).words).toEqual(train({ lookUp: gather, dtype, options }).words);
    },
  );

  it("clips, penalises and scales the rows that are there", () => {
    for (const options of [{ clip: { value: 0.2 } }, { regularizer: l2(0.1) }] as Options[]) {
      const dense = train({ lookUp: gather, options });
      const sparse = train({ options: { ...options, ...lazy } });
      expect(rowsIn(sparse.words, ALWAYS)).toEqual(rowsIn(dense.words, ALWAYS));
    }
    const clipped = (before: (table: Tensor) => void) => train({ options: lazy, before }).words;
    expect(clipped((table) => clipGradNorm([table], 0.5))).toEqual(
      train({ options: { ...lazy, clip: { norm: 0.5 } } }).words,
    );
    expect(clipped((table) => clipGradValue([table], 0.2))).toEqual(
      train({ options: { ...lazy, clip: { value: 0.2 } } }).words,
    );
  });

  it.each([undefined, new FakeDevice()])("is compiled for other rows, and for other numbers of them", (device) => {
    for (const dtype of ["f32", "bf16"] as const) {
      const run = {
        options: { ...lazy, stateDType: "bf16", clip: { norm: 0.5 } },
        dtype,
        batches: EVEN,
        ...(device && { device }),
      } as Run;
      expect(train({ ...run, compiled: true }).words).toEqual(train(run).words);
      expect(train({ ...run, compiled: true, options: {} }).words).toEqual(
        train({ ...run, lookUp: gather, options: {} }).words,
      );
    }
  });

  it("is the same on a device that the host cannot look into", () => {
    expect(train({ options: lazy, device: new FakeDevice({ async: false }) }).words).toEqual(
      train({ options: lazy }).words,
    );
  });

  it("steps nothing where no row is there, and counts the step", () => {
    const { words, step, first } = train({ options: lazy, batches: [[]] });
    expect(words.param).toEqual(first);
    expect(step).toBe(1);
  });

  it("passes dense gradients on to dense steps", () => {
    expect(train({ lookUp: gather, options: lazy }).words).toEqual(train({ lookUp: gather }).words);
  });

  it("is a boolean, saved and loaded", () => {
    const table = parameter([[1]]);
    expectCode("BAD_ARGUMENT", () => new Momentum([table], { lazyMode: 1 as never }));
    const optimizer = new Momentum([table]);
    optimizer.loadStateDict(new Momentum([parameter([[1]])], lazy).stateDict());
    expect(optimizer.groups[0]!.lazyMode).toBe(true);
  });

  it("has no functional step", () => {
    expectCode("UNSUPPORTED", () => functional(Momentum, lazy));
  });

  it("steps by one gradient of two parameters", () => {
    const tables = [parameter([[1], [2]]), parameter([[3], [4]])];
    const rows = rowSparse(tensor([1], { dtype: "i32" }), tensor([[1]]), [2, 1]);
    for (const table of tables) table.grad = rows;
    new Momentum(tables, { lr: 0.5, ...lazy }).step();
    expect(tables.map((table) => table.tolist())).toEqual([
      [[1], [1.5]],
      [[3], [3.5]],
    ]);
  });

  it.each(["eager", "compiled"])("can be switched between steps, %s", (how) => {
    const table = parameter([[1], [2], [3]]);
    const optimizer = new Momentum([table], { lr: 0.5, lazyMode: true });
    const body = (at: Tensor) => {
      gatherSparse(table, at).sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    };
    const step = how === "eager" ? body : compile(body);
    const at = (row: number) => tensor([row], { dtype: "i32" });
    for (let i = 0; i < 4; i++) step(at(i % 2));
    const first = (table.tolist() as number[][])[0];
    step(at(2));
    expect((table.tolist() as number[][])[0]).toEqual(first);
    optimizer.groups[0]!.lazyMode = false;
    step(at(2));
    expect((table.tolist() as number[][])[0]).not.toEqual(first); // its momentum goes on
  });
});

describe("row-sparse gradients", () => {
  const at = tensor([0, 2, 0], { dtype: "i32" });

  it("are cleared to null, or to no rows", () => {
    const table = parameter([[1], [2], [3]]);
    const optimizer = new Momentum([table], { lazyMode: true });
    gatherSparse(table, at).sum().backward();
    optimizer.step();
    optimizer.zeroGrad({ setToNull: false });
    const before = table.tolist();
    optimizer.step();
    expect(table.tolist()).toEqual(before);
    expect((table.grad as RowSparse).toDense().tolist()).toEqual([[0], [0], [0]]);
    optimizer.zeroGrad();
    expect(table.grad).toBeNull();
  });

  it.each([true, false])("are copies of what made them, with lazyMode: %s", (lazyMode) => {
    const steps = (change: boolean) => {
      const table = parameter([[1], [2], [3]]);
      const [rows, values] = [tensor([0, 2, 0], { dtype: "i32" }), tensor([[1], [2], [4]])];
      table.grad = rowSparse(rows, values, [3, 1]);
      const optimizer = new Momentum([table], { lazyMode });
      for (const outOfRange of [1, 99]) {
        if (change) rows.set([1, 1, outOfRange]);
        if (change) values.set([[7], [7], [7]]);
        optimizer.step();
      }
      return table.tolist();
    };
    expect(steps(true)).toEqual(steps(false));
  });

  it("are stepped as often as they stay", () => {
    const steps = (lazyMode: boolean) => {
      const table = parameter([[1], [2], [3]]);
      const optimizer = new Momentum([table], { lazyMode });
      table.grad = rowSparse(at, tensor([[1], [2], [4]]), [3, 1]);
      for (let i = 0; i < 3; i++) optimizer.step();
      return table.tolist();
    };
    expect(steps(true)).toEqual(steps(false));
  });

  it.each([true, false])("are unscaled, and skipped where one is not finite (lazyMode %s)", (lazyMode) => {
    const run = (lookUp: typeof gather, unscaled: boolean) => {
      const table = parameter([
        [1, 2],
        [2, 4],
        [3, 5],
      ]);
      const optimizer = new Momentum([table], { lazyMode, averaged: true });
      const scaler = new GradScaler({ initScale: 8 });
      for (const factor of [1, Number.POSITIVE_INFINITY, 2]) {
        scaler.scale(lookUp(table, at).pow(2).mul(factor).sum()).backward();
        if (unscaled) scaler.unscale(optimizer);
        void scaler.step(optimizer);
        void scaler.update();
        optimizer.zeroGrad();
      }
      const { step } = optimizer.stateDict().state["0"]!;
      return { rows: [table.tolist()].map((rows) => [(rows as number[][])[0], (rows as number[][])[2]]), step };
    };
    for (const unscaled of [false, true]) {
      expect(run(gatherSparse, unscaled)).toEqual(run(gather, unscaled));
      expect(run(gatherSparse, unscaled).step).toBe(2);
    }
  });

  it("accumulate in compiled functions, from none", () => {
    const run = (isCompiled: boolean) => {
      const table = parameter([[1], [2], [3]]);
      const optimizer = new Momentum([table], { lazyMode: true });
      const body = () => {
        for (let i = 0; i < 2; i++) gatherSparse(table, at).pow(2).sum().backward();
        optimizer.step();
        optimizer.zeroGrad();
      };
      const step = isCompiled ? compile(body) : body;
      for (let i = 0; i < 5; i++) step();
      return [table.tolist(), optimizer.stateDict().state["0"]!.step];
    };
    expect(run(true)).toEqual(run(false));
  });
});
