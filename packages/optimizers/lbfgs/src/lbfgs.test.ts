import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import {
  compile,
  concat,
  functional,
  GradScaler,
  parameter,
  rowSparse,
  sin,
  stepArrays,
  type Tensor,
  tensor,
  tidy,
} from "@opt/core";
import { ExponentialLR } from "@opt/core/schedules";
import { expectCode, optimizerSuite, Random, torchPython, withoutTorch } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { LBFGS, type LBFGSOptions } from "./index";

optimizerSuite(exported, {
  LBFGS: {
    defaults: {
      lr: 1,
      maxIter: 20,
      maxEval: 25,
      toleranceGrad: 1e-7,
      toleranceChange: 1e-9,
      historySize: 100,
      lineSearch: null,
      maximize: false,
    },
    wrong: {
      lr: [-1],
      maxIter: [0.5],
      maxEval: [0],
      historySize: [0],
      toleranceGrad: [Number.NaN],
      lineSearch: ["strong_wolfe"],
      maximize: [true],
      betas: [[0.9, 0.99]],
    },
  },
});

interface Case {
  readonly objective: string;
  readonly start: readonly number[];
  readonly options: Partial<LBFGSOptions>;
}

/** The loss and the parameters after each step, and the counts in the end. */
interface Run extends Case {
  readonly trace: readonly (readonly number[])[];
  readonly evaluations: number;
  readonly iterations: number;
}

const OBJECTIVES: Record<string, (x: Tensor) => Tensor> = {
  rosenbrock(x) {
    const [low, high] = [x.slice(0, -1), x.slice(1)];
    return high.sub(low.mul(low)).pow(2).mul(100).add(low.sub(1).pow(2)).sum();
  },
  waves: (x) =>
    x
      .mul(x)
      .sub(1)
      .pow(2)
      .add(sin(x.mul(7)).mul(0.3))
      .sum(),
};

/** A problem of float64 parameters with one element each. */
function problemOf({ objective, start, options }: Case) {
  const params = start.map((x) => parameter([x], { dtype: "f64" }));
  const optimizer = new LBFGS(params, options);
  const step = () =>
    optimizer.step(() => {
      optimizer.zeroGrad();
      const loss = OBJECTIVES[objective]!(concat(params));
      loss.backward();
      return loss;
    });
  const values = () => params.map((param) => param.dataSync()[0]!);
  return { params, optimizer, step, values };
}

async function expectRun(run: Run): Promise<void> {
  const { optimizer, step, values } = problemOf(run);
  for (const expected of run.trace) {
    const loss = await (await step()).item();
    expect([loss, ...values()]).toAgreeWith([...expected], { absolute: 1e-15, relative: 1e-8 });
  }
  const [memory] = Object.values(optimizer.stateDict().state);
  expect([memory!.func_evals, memory!.n_iter]).toEqual([run.evaluations, run.iterations]);
}

const stored: Run[] = JSON.parse(readFileSync(new URL("../testing/runs.json", import.meta.url), "utf8"));
it.each(stored)("PyTorch's steps: $objective $options", expectRun);

describe.skipIf(torchPython === undefined)(`PyTorch itself${withoutTorch}`, () => {
  const random = new Random(7);
  const cases = Array.from({ length: 9 }, (_, i): Case => {
    const size = 2 + random.below(6);
    const search = i % 3 > 0;
    const options = {
      lr: search ? 10 ** (random.uniform() * 4 - 3) : 0.01 * random.uniform(),
      maxIter: 1 + random.below(6),
      historySize: 1 + random.below(5),
      ...(search && { lineSearch: "strongWolfe" as const }),
    };
    const start = Array.from({ length: size }, () => 4 * random.uniform() - 2);
    return { objective: i % 2 ? "waves" : "rosenbrock", start, options };
  });
  it("takes the same steps from random starts", async () => {
    const script = new URL("../testing/runs.py", import.meta.url).pathname;
    const answer = execFileSync(torchPython!, [script], { input: JSON.stringify([...stored, ...cases]) });
    for (const run of JSON.parse(String(answer)) as Run[]) await expectRun(run);
  });
});

/** Steps along w^4 in float32. */
function quartic(options: Partial<LBFGSOptions> = {}, dtype: "f32" | "f64" = "f32") {
  const w = parameter([[1, -2]], { dtype, name: "w" });
  const b = parameter([3], { dtype, name: "b" });
  const optimizer = new LBFGS([w, b], options);
  const closure = () => {
    optimizer.zeroGrad();
    const loss = w.pow(4).sum().add(b.sub(1).pow(2).sum());
    loss.backward();
    return loss;
  };
  return { w, b, optimizer, closure, values: () => [...w.dataSync(), ...b.dataSync()] };
}

describe("options", () => {
  it("have an evaluation more for each four iterations", () =>
    expect(new LBFGS([parameter([1])], { maxIter: 7 }).groups[0]!.maxEval).toBe(8));

  it.each([
    { clip: { norm: 1 } },
    { regularizer: () => null },
    { stateDType: "bf16" },
    { lazyMode: true },
    { cautious: true },
    { hyperball: true },
    { centralize: true },
    { mars: { gamma: 0.025 } },
    { decay: "cautious" },
  ])("throw where they change steps of single elements: %o", (options) => {
    expect(() => new LBFGS([parameter([1])], options as object)).toThrow(Object.keys(options)[0]);
    expectCode("UNSUPPORTED", () => new LBFGS([parameter([1])], options as object));
  });

  it("say that a step needs a closure", () => expect(new LBFGS([parameter([1])]).needsClosure).toBe(true));

  it("are checked again when a step begins", () => {
    const { optimizer, closure } = quartic();
    optimizer.groups[0]!.lr = Number.NaN;
    expectCode("BAD_ARGUMENT", () => optimizer.step(closure));
  });

  it("follow a schedule", () => {
    const { optimizer } = quartic({ lr: 1 });
    new ExponentialLR(optimizer, { gamma: 0.5 }).step();
    expect(optimizer.groups[0]!.lr).toBe(0.5);
  });
});

describe("parameters", () => {
  it("must be f32 or f64, of one dtype, in one group", () => {
    expectCode("BAD_DTYPE", () => new LBFGS([parameter([1], { dtype: "bf16" })]));
    expectCode("BAD_DTYPE", () => new LBFGS([parameter([1]), parameter([1], { dtype: "f64" })]));
    const groups = [{ params: [parameter([1])] }, { params: [parameter([2])], lr: 0.5 }];
    expectCode("BAD_ARGUMENT", () => new LBFGS(groups));
    expect(new LBFGS(groups.slice(1)).groups[0]!.lr).toBe(0.5);
  });

  it("without a gradient stay, and row-sparse gradients count as dense ones", async () => {
    const [still, table] = [parameter([5]), parameter([[1], [2], [3]])];
    const loss = await new LBFGS([still, table], { lr: 0.5, maxIter: 1 }).step(() => {
      table.grad = rowSparse(tensor([2], { dtype: "i32" }), tensor([[4]]), [3, 1]);
      return 7;
    });
    expect(loss).toBe(7);
    expect([still.tolist(), table.tolist()]).toEqual([[5], [[1], [2], [2.5]]]);
  });
});

it.each(["f32", "f64"] as const)("reaches the minimum of several parameters in %s", async (dtype) => {
  const { optimizer, closure, values } = quartic({ lineSearch: "strongWolfe", maxIter: 50 }, dtype);
  await optimizer.step(closure);
  expect(values()).toAgreeWith([0, 0, 1], { absolute: 0.01, relative: 0 });
});

it("returns the first loss, of an asynchronous closure too", async () => {
  const { optimizer, closure } = quartic({ maxIter: 3 });
  const loss = await optimizer.step(async () => {
    await Promise.resolve();
    return closure();
  });
  expect(await loss.item()).toBe(21);
});

it.each([
  [2, 3],
  [1.99, 2.5], // the first step is at most 1 long: by 1 / 2 of the gradient, times lr
])("does not move where no gradient is above toleranceGrad: of 2 and %d", async (toleranceGrad, expected) => {
  const w = parameter([3]);
  const optimizer = new LBFGS([w], { lr: 0.5, maxIter: 1, toleranceGrad });
  await optimizer.step(() => {
    optimizer.zeroGrad();
    const loss = w.mul(2).sum();
    loss.backward();
    return loss;
  });
  expect([...w.dataSync()]).toEqual([expected]);
});

it("frees its vectors", async () => {
  const { w, optimizer, closure } = quartic({ lineSearch: "strongWolfe", maxIter: 5, historySize: 2, lr: 0.1 });
  const losses: Tensor[] = [];
  const before = w.device.memory();
  await optimizer.step(() => {
    losses.push(tidy(closure));
    return losses.at(-1)!;
  });
  optimizer.zeroGrad();
  const state = { vectors: 2 + 2 * 2, elements: 3 };
  expect(w.device.memory().tensors).toBe(before.tensors + losses.length + state.vectors);
  expect(w.device.memory().bytes).toBe(before.bytes + 4 * (losses.length + state.vectors * state.elements));
  optimizer.dispose();
  for (const loss of losses) loss.dispose();
  expect(w.device.memory()).toEqual(before);
});

it("throws for a missing closure, a step that was not awaited, and a loss that is no number", async () => {
  const { optimizer, closure } = quartic({ maxIter: 2 });
  expectCode("BAD_ARGUMENT", () => (optimizer.step as () => unknown)());
  expectCode("BAD_ARGUMENT", () => stepArrays(optimizer as never, {}, {}));
  await expectCode("BAD_ARGUMENT", () => optimizer.step(() => undefined as never));
  await expectCode("BAD_SHAPE", () => optimizer.step(() => tensor([1, 2])));
  const first = optimizer.step(closure);
  expectCode("BAD_STATE", () => optimizer.step(closure));
  await first;
  await optimizer.step(closure);
});

it("leaves parameters where the line search began if the closure throws", async () => {
  const { optimizer, closure, values } = quartic({ lineSearch: "strongWolfe" });
  const before = values();
  let calls = 0;
  const failing = () => {
    if (++calls === 3) throw new RangeError("no data");
    return closure();
  };
  await expect(optimizer.step(failing)).rejects.toThrow("no data");
  expect(calls).toBe(3);
  if (optimizer.stateDict().state.w!.n_iter === 1) expect(values()).toEqual(before);
  await optimizer.step(closure);
  expect(values()).toAgreeWith([0, 0, 1], { absolute: 0.1, relative: 0 });
});

describe("what steps by rules of single elements throws by name:", () => {
  const { optimizer, closure } = quartic();
  it.each<[string, () => unknown]>([
    ["functional", () => functional(LBFGS as never)],
    ["compile", () => compile(() => void optimizer.step(closure))()],
  ])("%s", (_, call) => {
    expect(call).toThrow("LBFGS");
    expectCode("UNSUPPORTED", call);
  });

  it("GradScaler", () => {
    const scaler = new GradScaler();
    scaler.scale(closure().detach());
    expect(() => scaler.step(optimizer as never)).toThrow("LBFGS");
  });
});

describe("state", () => {
  // Of a line no curvature is stored: the next steps have what was loaded.
  it.each<[Partial<LBFGSOptions>, (x: Tensor) => Tensor]>([
    [{ lr: 0.05, maxIter: 4, historySize: 3 }, (x) => x.pow(4)],
    [{ lineSearch: "strongWolfe", maxIter: 2, lr: 0.1 }, (x) => x.pow(4)],
    [{ lr: 0.05, maxIter: 1 }, (x) => x.mul(-3)],
  ])("has PyTorch's keys, and resumes with the same numbers: %o, %s", async (options, next) => {
    const [here, there] = [quartic(options), quartic()];
    expect(here.optimizer.stateDict().state).toEqual({});
    await here.optimizer.step(here.closure);
    await here.optimizer.step(here.closure);
    const saved = here.optimizer.stateDict();
    const keys = [
      "func_evals",
      "n_iter",
      "d",
      "t",
      "old_dirs",
      "old_stps",
      "ro",
      "H_diag",
      "prev_flat_grad",
      "prev_loss",
    ];
    expect(Object.keys(saved.state.w!)).toEqual(keys);
    for (const name of ["w", "b"] as const) there[name].set(here[name]);
    there.optimizer.loadStateDict(saved);
    expect(there.optimizer.groups[0]).toMatchObject(options);
    for (const { optimizer, w, b } of [here, there]) {
      const closure = () => {
        optimizer.zeroGrad();
        const loss = next(w).sum().add(next(b).sum());
        loss.backward();
        return loss;
      };
      for (let i = 0; i < 3; i++) await optimizer.step(closure);
    }
    expect(there.values()).toEqual(here.values());
    expect(there.optimizer.stateDict().state.w!.ro).toEqual(here.optimizer.stateDict().state.w!.ro);
  });

  it("that does not fit is rejected, and changes nothing", async () => {
    const { optimizer, closure } = quartic({ maxIter: 3, lr: 0.05 });
    await optimizer.step(closure);
    const { groups, state } = optimizer.stateDict();
    const memory = state.w!;
    const wrong: [string, unknown][] = [
      ["nothing", undefined],
      ["two groups", { groups: [...groups, ...groups], state }],
      ["an entry that is a number", { groups, state: { w: 1 } }],
      ["a direction of another size", { groups, state: { w: { ...memory, d: tensor([1]) } } }],
      ["no last gradient", { groups, state: { w: { ...memory, prev_flat_grad: undefined } } }],
      ["too few steps", { groups, state: { w: { ...memory, old_stps: [] } } }],
      ["a ro that is NaN", { groups, state: { w: { ...memory, ro: memory.ro!.map(() => Number.NaN) } } }],
      ["maxIter below 1", { groups: [{ ...groups[0]!, maxIter: 0 }], state }],
    ];
    for (const [what, saved] of wrong) {
      expectCode("BAD_STATE", () => optimizer.loadStateDict(saved as never));
      expect(optimizer.stateDict().state.w, what).toEqual(memory);
    }
  });
});

it("zeroGrad drops gradients, or makes zeros of them with setToNull: false", () => {
  const w = parameter([1]);
  const optimizer = new LBFGS([w]);
  w.grad = tensor([2]);
  optimizer.zeroGrad({ setToNull: false });
  expect(w.grad.tolist()).toEqual([0]);
  optimizer.zeroGrad();
  expect(w.grad).toBe(null);
});

it("goes on as a new one once it is disposed", async () => {
  const w = parameter([1, 2]);
  const optimizer = new LBFGS([w], { maxIter: 3 });
  const run = async () => {
    w.set([1, 2]);
    for (let step = 0; step < 2; step++)
      await optimizer.step(() => {
        w.clearGradient();
        const loss = w
          .pow(4)
          .mul(tensor([1, 3]))
          .sum();
        loss.backward();
        return loss;
      });
    return w.tolist();
  };
  const first = await run();
  optimizer.dispose();
  expect(await run()).toEqual(first);
});

it("keeps as many changes as historySize says from the next step on", async () => {
  const w = parameter([1, 2, 3]);
  const optimizer = new LBFGS([w], { maxIter: 5, lr: 0.1 });
  const kept = async () => {
    await optimizer.step(() => {
      w.clearGradient();
      const loss = w
        .pow(4)
        .mul(tensor([1, 3, 2]))
        .sum();
      loss.backward();
      return loss;
    });
    return (optimizer.stateDict().state["0"] as { ro: number[] }).ro.length;
  };
  expect(await kept()).toBeGreaterThan(3);
  Object.assign(optimizer.groups[0]!, { historySize: 1 });
  expect(await kept()).toBe(1);
});
