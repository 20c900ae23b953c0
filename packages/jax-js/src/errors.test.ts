// What cannot be right is rejected by code, with nothing consumed.
import { defaultDevice, devicePut, grad, init, jit, numpy as np, tree } from "@jax-js/jax";
import { AdamW } from "@opt/adam-amsgrad";
import type { ErrorCode } from "@opt/core";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { expectCode, rawErrors } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { fromTensors, toTensors } from "./tensors";
import { applyUpdates, type GradientTransformation, gradientTransformation } from "./transformation";

await init("cpu", "wasm");
defaultDevice("wasm");

const make = () => ({ w: np.ones([2]), layers: [np.ones([3])] });
const tx: GradientTransformation = gradientTransformation(AdamW) as never;
const any = (value: unknown) => value as never;

const GRADS: [string, ErrorCode, () => unknown][] = [
  ["a missing leaf", "BAD_ARGUMENT", () => ({ w: np.ones([2]), layers: [] })],
  ["a leaf too many", "BAD_ARGUMENT", () => ({ ...make(), b: np.ones([2]) })],
  ["another nesting", "BAD_ARGUMENT", () => ({ w: np.ones([2]), layers: np.ones([3]) })],
  ["another order", "BAD_ARGUMENT", () => ({ layers: [np.ones([3])], w: np.ones([2]) })],
  ["another shape", "BAD_SHAPE", () => ({ ...make(), w: np.ones([1, 2]) })],
  ["another dtype", "BAD_DTYPE", () => ({ ...make(), w: np.ones([2]).astype(np.float64) })],
  ["integers", "BAD_DTYPE", () => ({ ...make(), w: np.ones([2]).astype(np.int32) })],
  ["numbers", "BAD_ARGUMENT", () => ({ ...make(), w: 1 })],
  ["null", "BAD_ARGUMENT", () => ({ ...make(), w: null })],
  ["nothing", "BAD_ARGUMENT", () => undefined],
  ["a cycle", "BAD_ARGUMENT", () => cyclic()],
];

function cyclic() {
  const made: Record<string, unknown> = make();
  made.w = made;
  return made;
}

describe.each(["update", "step"] as const)("%s rejects, and consumes nothing:", (way) => {
  it.each(GRADS)("%s (%s)", (_, code, grads) => {
    const [params, state] = [make(), tx.init(make())];
    expectCode(code, () => tx[way](any(grads()), state, params));
    expect(
      [...tree.leaves<np.Array>(params), ...tree.leaves<np.Array>(state.exp_avg as typeof params)].map(
        ({ refCount }) => refCount,
      ),
    ).toEqual([1, 1, 1, 1]);
  });

  it("consumed arrays, and one reference for two uses", () => {
    const [params, state] = [make(), tx.init(make())];
    expectCode("DISPOSED", () => tx[way](params, state, params));
    params.w.dispose();
    expectCode("DISPOSED", () => tx[way](make(), state, params));
    expectCode("DISPOSED", () => tx.init(params));
    expectCode("DISPOSED", () => applyUpdates(make(), params));
  });

  it("a state of other options, of other parameters, or without its count", () => {
    const params = make();
    const nadam = gradientTransformation(NAdam).init(make());
    const other = tx.init({ w: np.ones([2]) });
    const { step: _, ...rest } = tx.init(make());
    const states = [
      nadam,
      other,
      rest,
      { ...tx.init(make()), step: "1" },
      { ...tx.init(make()), step: -1 },
      { ...tx.init(make()), step: 0.5 },
      { ...tx.init(make()), step: Number.NaN },
      null,
      [],
      1,
      { ...rest, step: 1, exp_avg: 2 },
    ];
    for (const state of states.slice(0, -1)) expectCode("BAD_STATE", () => tx.update(make(), any(state), params));
    expectCode("BAD_ARGUMENT", () => tx.update(make(), any(states.at(-1)), params));
  });

  it("options that are unknown, out of range or ask for other state", () => {
    const call = (overrides: object) => () => tx.update(make(), tx.init(make()), make(), overrides);
    expectCode("BAD_ARGUMENT", call({ learningRate: 1 }));
    expectCode("BAD_ARGUMENT", call({ lr: -1 }));
    expectCode("BAD_ARGUMENT", call({ amsgrad: true }));
    tx.update(make(), tx.init(make()), make(), any({ lr: 0, weightDecay: 0 }));
  });

  it("arrays that are traced", () => {
    const state = tx.init(make());
    const traced = (params: ReturnType<typeof make>) => tx.update(make(), state, params)[0];
    expectCode("UNSUPPORTED", () => jit(traced)(make()));
    expectCode("UNSUPPORTED", () => grad((w: np.Array) => tx.init(w) as never as np.Array)(np.ones([2])));
  });

  it("gradients on another device", async () => {
    const w = await devicePut(np.ones([2]), "cpu");
    expectCode("DEVICE_MISMATCH", () => tx.update({ ...make(), w }, tx.init(make()), make()));
  });
});

it("says so where CommonJS has brought another copy of jax-js, and where params were left out", () => {
  class Foreign {
    readonly aval = {};
    readonly refCount = 1;
  }
  const other = any(new Foreign());
  expectCode("BAD_ARGUMENT", () => tx.init(other));
  expect(() => tx.init(other)).toThrow(/another copy of jax-js/);
  expect(() => tx.update(make(), tx.init(make()), any(undefined))).toThrow(
    /params must be a jax-js array, got undefined/,
  );
});

it("rejects a norm over several devices or dtypes", async () => {
  const limited = gradientTransformation(AdamW, { clip: { norm: 1 } });
  const there = await devicePut(np.ones([2]), "cpu");
  const rejected = (code: ErrorCode, make: () => np.Array[]) => {
    const [params, grads] = [make(), make()];
    const state = limited.init(make());
    expectCode(code, () => limited.update(grads, state, params));
    expect(grads[0]!.refCount).toBe(1);
  };
  rejected("DEVICE_MISMATCH", () => [np.ones([2]), there.ref]);
  rejected("BAD_DTYPE", () => [np.ones([2]), np.ones([2]).astype(np.float64)]);
});

it("makes transformations of classes alone, with options that a rule can have", () => {
  expectCode("BAD_ARGUMENT", () => gradientTransformation(any({})));
  expect(() => gradientTransformation(any("adam"))).toThrow(/\[gradientTransformation\] needs the class/);
  expectCode("BAD_ARGUMENT", () => gradientTransformation(AdamW, any({ learningRate: 1 })));
  for (const options of [{ stateDType: "bf16" }, { lazyMode: true }] as const) {
    expectCode("UNSUPPORTED", () => gradientTransformation(AdamW, options));
  }
  expectCode("UNSUPPORTED", () => gradientTransformation(Muon));
});

it("rejects paths that fall together, and 16 bits", () => {
  expectCode("DUPLICATE", () => tx.init({ "a.b": np.ones([1]), a: { b: np.ones([1]) } }));
  expectCode("BAD_DTYPE", () => tx.init(np.ones([1]).astype(np.float16)));
});

it("never throws a raw error at arguments of the wrong kind", async () => {
  const functions: Record<string, () => [(...args: never[]) => unknown, unknown[]]> = {
    init: () => [tx.init, [make()]],
    update: () => [tx.update, [make(), tx.init(make()), make(), { lr: 1 }]],
    stateDict: () => [tx.stateDict, [tx.init(make()), make()]],
    loadStateDict: () => [tx.loadStateDict, [{ groups: [], state: {} }, make()]],
    applyUpdates: () => [applyUpdates, [make(), make()]],
    toTensors: () => [toTensors, [make()]],
    fromTensors: () => [fromTensors, [{}, make()]],
    gradientTransformation: () => [gradientTransformation, [AdamW, { lr: 1 }]],
  };
  for (const [name, call] of Object.entries(functions)) {
    const body = (...args: never[]) => call()[0](...args);
    expect(await rawErrors(name, body, () => call()[1])).toEqual([]);
  }
});
