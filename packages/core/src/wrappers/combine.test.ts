/** combine: the words of two optimizers by hand, one step and one state for both. */
import { expectCode, seededArray } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Descent } from "../../testing/descent";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import "../index";
import { GradScaler } from "../loss-scaling/scaler";
import { clipGradNorm } from "../optimizer/gradients/clip";
import { StepLR } from "../schedules/index";
import type { Tensor } from "../tensor/tensor";
import { combine } from "./combine";

const SHAPES = { "embed.weight": [4, 3], "blocks.0.weight": [3, 3], "blocks.0.bias": [3], "lm_head.weight": [4, 3] };

function model() {
  const named = Object.entries(SHAPES).map(([name, shape], i): [string, Tensor] => {
    const size = shape.reduce((a, b) => a * b, 1);
    return [
      name,
      parameter(seededArray("f32", size, { seed: i }))
        .detach()
        .reshape(shape)
        .clone(),
    ];
  });
  for (const [, x] of named) x.requiresGrad = true;
  return { named, namedParameters: () => named };
}

type Model = ReturnType<typeof model>;

const lossOf = ({ named }: Model) =>
  named
    .map(([, x], i) =>
      x
        .mul(x)
        .mul(i + 1)
        .add(x)
        .sum(),
    )
    .reduce((sum, x) => sum.add(x));
const words = ({ named }: Model) => named.map(([, x]) => [...x.dataSync()]);
const OPTIONS = { matrices: { lr: 0.01, momentum: 0.5 }, rest: { lr: 0.02 } };
const combined = (m: Model, options: object = OPTIONS) => combine(m, { matrices: Momentum, rest: Descent }, options);

function byHand({ named }: Model) {
  const matrices = new Momentum(named.slice(1, 2), OPTIONS.matrices);
  const rest = new Descent([named[0]!, named[2]!, named[3]!], OPTIONS.rest);
  return [matrices, rest] as const;
}

function train(m: Model, optimizers: readonly { step(): void; zeroGrad(): void }[], steps = 4, before = () => {}) {
  for (let i = 0; i < steps; i++) {
    for (const optimizer of optimizers) optimizer.zeroGrad();
    lossOf(m).backward();
    before();
    for (const optimizer of optimizers) optimizer.step();
  }
}

it("has the words of two optimizers by hand", () => {
  const [one, two] = [model(), model()];
  const start = words(one);
  train(one, [combined(one)]);
  train(two, byHand(two));
  expect(words(one)).toEqual(words(two));
  for (const [i, before] of start.entries()) expect(words(one)[i]).not.toEqual(before);
});

it("routes by shape and name, or as told", () => {
  const names = (routing?: object) =>
    combine(model(), { matrices: Momentum, rest: Descent }, {}, routing).groups.map(({ names }) => names);
  expect(names()).toEqual([["blocks.0.weight"], ["embed.weight", "blocks.0.bias", "lm_head.weight"]]);
  const isMatrix = (name: string, x: Tensor) => x.shape.length === 2 && name !== "lm_head.weight";
  expect(names({ isMatrix })[0]).toEqual(["embed.weight", "blocks.0.weight"]);
  expect(names({ isMatrix: () => true })).toEqual([Object.keys(SHAPES)]);
});

it.each(["wte", "wpe", "lmHead", "head", "tok_embeddings", "classifier", "logits", "unembed"])(
  "takes %s as an embedding or head, and a name that only contains it as none",
  (segment) => {
    const x = () => parameter([[1, 2]]);
    const named: [string, Tensor][] = [
      [`a.${segment}.weight`, x()],
      [`${segment}x.weight`, x()],
    ];
    const { groups } = combine(named, { matrices: Momentum, rest: Descent });
    expect(groups.map(({ names }) => names)).toEqual([[`${segment}x.weight`], [`a.${segment}.weight`]]);
  },
);

it("limits the norm over both parts together", () => {
  const [one, two] = [model(), model()];
  const clip = { norm: 0.5 };
  const { matrices, rest } = OPTIONS;
  train(one, [combined(one, { matrices: { ...matrices, clip }, rest: { ...rest, clip } })]);
  const ordered = [1, 0, 2, 3].map((i) => two.named[i]![1]);
  train(two, byHand(two), 4, () => clipGradNorm(ordered, 0.5).dispose());
  expect(words(one)).toEqual(words(two));
});

it("resumes from its state dict", () => {
  const [whole, first, second] = [model(), model(), model()];
  const optimizer = combined(first);
  train(whole, [combined(whole)], 6);
  train(first, [optimizer], 3);
  const state = optimizer.stateDict();
  expect(state.groups.map(({ params }) => params.length)).toEqual([1, 3]);
  second.named.forEach(([, x], i) => {
    x.set(first.named[i]![1].detach());
  });
  const resumed = combined(second, {});
  resumed.loadStateDict(state);
  expect(resumed.groups.map(({ lr }) => lr)).toEqual([0.01, 0.02]);
  train(second, [resumed], 3);
  expect(words(second)).toEqual(words(whole));
});

it("a load or a step that fails in one part changes nothing in the other", () => {
  const m = model();
  const optimizer = combined(m);
  train(m, [optimizer], 2);
  const { groups, state } = optimizer.stateDict();
  const before = words(m);
  const saved = structuredClone(groups);
  saved[0]!.lr = 7;
  expectCode("BAD_STATE", () => optimizer.loadStateDict({ groups: [saved[0]!, { ...saved[1]!, lr: "fast" }], state }));
  expectCode("BAD_STATE", () => optimizer.loadStateDict({ groups: [saved[0]!], state }));
  expectCode("BAD_STATE", () => optimizer.loadStateDict({ groups, state: { ...state, other: { step: 1 } } }));
  expectCode("BAD_STATE", () => optimizer.loadStateDict(null as never));
  expect(optimizer.groups[0]!.lr).toBe(0.01);
  optimizer.groups[1]!.lr = Number.NaN;
  const steps = () => optimizer.stateDict().state["blocks.0.weight"]!.step;
  expectCode("BAD_ARGUMENT", () => optimizer.step());
  expect([words(m), steps()]).toEqual([before, 2]);
  optimizer.groups[1]!.lr = 0.02;
  m.named[3]![1].grad!.dispose();
  expectCode("DISPOSED", () => optimizer.step());
  expect([words(m), steps()]).toEqual([before, 2]);
});

it("a scaler skips an overflow in both parts", () => {
  const [scaled, plain] = [model(), model()];
  const [one, two] = [combined(scaled), combined(plain)];
  const scaler = new GradScaler({ initScale: 1024 });
  for (let i = 0; i < 5; i++) {
    one.zeroGrad();
    scaler.scale(lossOf(scaled)).backward();
    if (i === 2) scaled.named[0]![1].grad!.set(scaled.named[0]![1].grad!.mul(Number.POSITIVE_INFINITY));
    scaler.step(one);
    expect(scaler.stepWasSkipped).toBe(i === 2);
    scaler.update();
  }
  train(plain, [two], 4);
  expect(words(scaled)).toEqual(words(plain));
});

it("a schedule moves both parts, eager and compiled", () => {
  const runs = [model(), model()].map((m, i) => {
    const optimizer = combined(m);
    const schedule = new StepLR(optimizer, { stepSize: 2, gamma: 0.5 });
    const body = () => {
      optimizer.zeroGrad();
      lossOf(m).backward();
      optimizer.step();
    };
    const step = i === 0 ? body : compile(body);
    for (let n = 0; n < 7; n++) {
      step();
      schedule.step();
    }
    expect(optimizer.groups.map(({ lr }) => lr)).toEqual([0.01 / 8, 0.02 / 8]);
    return words(m);
  });
  expect(runs[1]).toEqual(runs[0]);
});

it("calls hooks of its own, and says that one looks before", () => {
  const m = model();
  const optimizer = combined(m);
  const seen: unknown[] = [];
  expect(optimizer.looksBefore).toBe(false);
  const off = optimizer.on("beforeStep", (owner) => seen.push(owner === optimizer));
  expect(optimizer.looksBefore).toBe(true);
  expect(optimizer.step(() => lossOf(m).dataSync()[0])).toBe(lossOf(m).dataSync()[0]);
  off();
  optimizer.step();
  expect(seen).toEqual([true]);
});

it("starts afresh once disposed", () => {
  const m = model();
  const optimizer = combined(m);
  train(m, [optimizer], 2);
  optimizer.dispose();
  expect(optimizer.stateDict().state).toEqual({});
});

describe("rejects", () => {
  const classes = { matrices: Momentum, rest: Descent };
  it.each<[string, () => unknown, string?]>([
    ["a model without matrices", () => combine([["b", parameter([1])]], classes)],
    ["an unknown part", () => combine(model(), { ...classes, others: Descent } as never)],
    ["options of an unknown part", () => combine(model(), classes, { matrix: {} } as never)],
    ["an unknown option", () => combine(model(), classes, { rest: { rate: 1 } } as never)],
    ["an unknown routing", () => combine(model(), classes, {}, { isBias: () => true } as never)],
    ["a class that is missing", () => combine(model(), { matrices: Momentum } as never)],
    ["parameters without names", () => combine([parameter([[1]])] as never, classes)],
    [
      "a parameter twice",
      () =>
        ((x) =>
          combine(
            [
              ["a", x],
              ["head", x],
            ],
            classes,
          ))(parameter([[1]])),
      "DUPLICATE",
    ],
    [
      "a name twice",
      () =>
        combine(
          [
            ["a", parameter([[1]])],
            ["a", parameter([1])],
          ],
          classes,
        ),
      "DUPLICATE",
    ],
    ["no model", () => combine(tensor([1]) as never, classes)],
  ])("%s", (_, make, code = "BAD_ARGUMENT") => expectCode(code as "BAD_ARGUMENT", make));
});
