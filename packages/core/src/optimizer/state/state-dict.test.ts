import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum } from "../../../testing/momentum";
import { parameter, tensor, zeros } from "../../create";
import type { ErrorCode } from "../../errors/errors";
import { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import type { GroupOptions } from "../algorithm";
import { l1, l2 } from "../gradients/regularizer";
import type { OptimizerState } from "./state-dict";

/** Two groups, three parameters; the last one has no gradient in every other step. */
function build(dtype: DType = "f32", names: readonly string[] | null = ["a", "b", "c"]) {
  const params = [parameter([1, 2], { dtype }), parameter([[3]], { dtype }), parameter([4], { dtype })];
  const entry = (i: number) => (names === null ? params[i]! : ([names[i]!, params[i]!] as const));
  const optimizer = new Momentum([
    { params: [entry(0), entry(1)] as never },
    { params: [entry(2)] as never, lr: 0.03 },
  ]);
  const run = (from: number, to: number) => {
    for (let step = from; step < to; step++) {
      params.forEach((param, i) => {
        const gradient = new Array(param.size).fill(Math.sin(step + i));
        param.grad = i === 2 && step % 2 === 1 ? null : tensor(gradient, { dtype, shape: param.shape });
      });
      optimizer.step();
    }
  };
  return { params, optimizer, run };
}

/** Everything that a load could change. */
function contents({ groups, state }: OptimizerState) {
  const parts = Object.entries(state).flatMap(([name, entry]) =>
    Object.entries(entry).map(([key, value]) => [
      `${name}.${key}`,
      value instanceof Tensor ? [value.dtype, value.shape, [...value.bytesSync()]] : value,
    ]),
  );
  return { groups, state: Object.fromEntries(parts) };
}

describe.each<DType>(["f32", "f64", "bf16"])("a state of %s", (dtype) => {
  it("fits an option that was switched on since the last step, and asks for more state", () => {
    const [straight, resumed] = [build(dtype), build(dtype)];
    straight.run(0, 3);
    straight.optimizer.groups[0]!.averaged = true;
    resumed.optimizer.loadStateDict(straight.optimizer.stateDict());
    resumed.params.forEach((param, i) => {
      param.set(straight.params[i]!);
    });
    for (const one of [straight, resumed]) one.run(3, 5);
    expect(contents(resumed.optimizer.stateDict())).toEqual(contents(straight.optimizer.stateDict()));
  });

  it.each([
    ["by name", ["a", "b", "c"], ["a", "b", "c"]],
    ["by position", null, null],
    ["by position where the saved names are numbers", null, ["a", "b", "c"]],
    ["by position where ours are numbers", ["a", "b", "c"], null],
  ])("goes on %s with the bits of an uninterrupted run", (_, savedNames, ourNames) => {
    const [straight, first, second] = [build(dtype, savedNames), build(dtype, savedNames), build(dtype, ourNames)];
    straight.run(0, 9);
    first.run(0, 4);
    second.params.forEach((param, i) => {
      param.set(first.params[i]!);
    });
    second.optimizer.loadStateDict(first.optimizer.stateDict());
    second.run(4, 9);
    straight.params.forEach((param, i) => {
      expect(second.params[i]!.dataSync()).toAgreeWith(param.dataSync());
    });
  });
});

it("names in another order are matched by name", () => {
  const [saved, ours] = [build("f32", ["a", "b", "c"]), parameter([[3]])];
  saved.run(0, 2);
  const other = new Momentum([
    {
      params: [
        ["b", ours],
        ["a", parameter([1, 2])],
      ] as never,
    },
    { params: [["c", parameter([4])]] as never },
  ]);
  other.loadStateDict(saved.optimizer.stateDict());
  expect(other.stateDict().state.b!.velocity).toHaveProperty("shape", [1, 1]);
});

describe.each([
  ["with numbers in them", ["0.weight", "1.weight", "10"]],
  ["that end in numbers", ["layer2", "layer1", "w0"]],
  ["of which one is a number", ["w", "0", "b"]],
])("names %s", (_, names) => {
  it("are matched by name in another order", () => {
    const values = [1, 2, 3];
    const make = (order: readonly string[]) => {
      const params = order.map((name) => [name, parameter([0])] as const);
      return { params, optimizer: new Momentum(params) };
    };
    const [saved, loaded] = [make(names), make(names.toReversed())];
    saved.params.forEach(([, param], i) => {
      param.grad = tensor([values[i]!]);
    });
    saved.optimizer.step();
    loaded.optimizer.loadStateDict(saved.optimizer.stateDict());
    const { state } = loaded.optimizer.stateDict();
    expect(names.map((name) => Number(state[name]!.velocity))).toEqual(values);
  });
});

it("numbers of two digits are positions, too", () => {
  const make = (prefix: string) =>
    new Momentum(Array.from({ length: 12 }, (_, i) => parameter([i], prefix === "" ? {} : { name: `${prefix}${i}` })));
  const saved = make("");
  for (const param of saved.groups[0]!.params) param.grad = tensor([Number(param)]);
  saved.step();
  const loaded = make("w");
  loaded.loadStateDict(saved.stateDict());
  expect(Number(loaded.stateDict().state.w11!.velocity)).toBe(11);
});

it("a state of no step is a state", () => {
  const { optimizer, run } = build();
  run(0, 1);
  const { groups, state } = optimizer.stateDict();
  optimizer.loadStateDict({ groups, state: { a: { ...state.a!, step: 0 } } });
  expect(optimizer.stateDict().state).toEqual({});
  run(1, 2);
  expect(optimizer.stateDict().state.a!.step).toBe(1);
});

it("a float32 copy is loaded for 16-bit parameters only", () => {
  const saved = build("bf16");
  saved.run(0, 2);
  const keys = (["bf16", "f16", "f32", "f64"] as const).map((dtype) => {
    const { optimizer } = build(dtype);
    optimizer.loadStateDict(saved.optimizer.stateDict());
    return Object.keys(optimizer.stateDict().state.a!).slice(2);
  });
  expect(keys).toEqual([["master_param"], ["master_param"], [], []]);
});

it("a state dict has PyTorch's keys, options by group, and only stepped parameters", () => {
  const { optimizer, run } = build();
  run(1, 2);
  const { groups, state } = optimizer.stateDict();
  expect(groups).toEqual([
    { lr: 0.1, momentum: 0.9, maximize: false, averaged: false, regularizer: null, params: ["a", "b"] },
    { lr: 0.03, momentum: 0.9, maximize: false, averaged: false, regularizer: null, params: ["c"] },
  ]);
  expect(Object.keys(state)).toEqual(["a", "b"]);
  expect(Object.keys(state.a!)).toEqual(["step", "velocity"]);
});

it("what is loaded is a copy", () => {
  const [saved, loaded] = [build(), build()];
  saved.run(0, 2);
  loaded.optimizer.loadStateDict(saved.optimizer.stateDict());
  const before = contents(saved.optimizer.stateDict());
  loaded.run(2, 4);
  expect(contents(saved.optimizer.stateDict())).toEqual(before);
  loaded.optimizer.loadStateDict(loaded.optimizer.stateDict()); // its own live tensors
  loaded.run(4, 5);
});

it("saved options replace the present ones, also penalties", () => {
  const make = (lr: number, regularizer = l1(0.5)) => new Momentum([parameter([1])], { lr, regularizer });
  const [saved, loaded] = [make(7, l2(0.25)), make(1)];
  loaded.loadStateDict(JSON.parse(JSON.stringify(saved.stateDict())));
  expect([loaded.groups[0]!.lr, loaded.groups[0]!.regularizer]).toEqual([7, l2(0.25)]);
});

describe("a penalty", () => {
  const byName = () => l1(0.5);
  const make = (regularizer?: GroupOptions["regularizer"]) => new Momentum([parameter([1])], { regularizer });
  it.each<[string, GroupOptions["regularizer"], GroupOptions["regularizer"], GroupOptions["regularizer"]]>([
    ["is taken away by a state that had none", undefined, l2(0.25), null],
    ["is taken away by a state that had null", null, l2(0.25), null],
    ["comes with a state", l1(0.5), undefined, l1(0.5)],
    ["by function is the program's: it is not saved", byName, l2(0.25), l2(0.25)],
    ["by function gives way to a saved one", l1(0.5), byName, l1(0.5)],
  ])("%s", (_, saved, present, expected) => {
    const loaded = make(present);
    loaded.loadStateDict(JSON.parse(JSON.stringify(make(saved).stateDict())));
    expect(loaded.groups[0]!.regularizer).toEqual(expected);
  });

  it("by function is in no state", () => {
    expect(make(byName).stateDict().groups[0]).not.toHaveProperty("regularizer");
  });

  it("stays where the state comes from a library that names none", () => {
    const loaded = make(l2(0.25));
    const { groups, state } = make(l1(0.5)).stateDict();
    const { regularizer: _, ...others } = groups[0]!;
    loaded.loadStateDict({ groups: [others], state });
    expect(loaded.groups[0]!.regularizer).toEqual(l2(0.25));
  });

  it("that is invalid is no state's", () => {
    const { groups, state } = make().stateDict();
    for (const regularizer of [false, 0.01, { kind: "l3", coefficient: 1 }])
      expectCode("BAD_STATE", () => make().loadStateDict({ groups: [{ ...groups[0]!, regularizer }], state }));
  });
});

it.each<[DType, DType]>([
  ["f64", "f32"],
  ["f32", "f64"],
  ["f32", "bf16"],
])("state of %s parameters is cast for %s ones, step stays", (from, to) => {
  const [saved, loaded] = [build(from), build(to)];
  saved.run(0, 3);
  loaded.optimizer.loadStateDict(saved.optimizer.stateDict());
  const state = loaded.optimizer.stateDict().state.a!;
  expect([(state.velocity as Tensor).dtype, state.step]).toEqual([to === "f64" ? "f64" : "f32", 3]);
  loaded.run(3, 4);
});

it("state moves to the parameter's device", () => {
  const saved = build();
  saved.run(0, 1);
  const device = new FakeDevice();
  const moved = saved.params.map((param) => parameter(param, { device }));
  const optimizer = new Momentum([{ params: moved.slice(0, 2) }, { params: moved.slice(2) }]);
  optimizer.loadStateDict(saved.optimizer.stateDict());
  expect((optimizer.stateDict().state["0"]!.velocity as Tensor).device).toBe(device);
});

describe("a load is rejected, and changes nothing, for", () => {
  const disposed = () => {
    const gone = zeros([1]);
    gone.dispose();
    return gone;
  };
  /** Puts a value in the place of another. */
  const put =
    (path: string, value: unknown) =>
    (state: OptimizerState): unknown => {
      const keys = path.split(".");
      const holder = keys.slice(0, -1).reduce<object>((at, key) => at[key as keyof typeof at], state);
      Object.assign(holder, { [keys.at(-1)!]: value });
      return state;
    };

  it.each<[string, ErrorCode, (state: OptimizerState) => unknown]>([
    ["nothing", "BAD_STATE", () => undefined],
    ["null", "BAD_STATE", () => null],
    ["no groups", "BAD_STATE", ({ state }) => ({ state })],
    ["no state", "BAD_STATE", ({ groups }) => ({ groups })],
    ["a state that is null", "BAD_STATE", put("state", null)],
    ["too few groups", "BAD_STATE", ({ groups, state }) => ({ groups: groups.slice(1), state })],
    ["too many groups", "BAD_STATE", put("groups.2", { params: [] })],
    ["a float32 copy of another shape", "BAD_STATE", put("state.c.master_param", zeros([2]))],
    ["a group that is null", "BAD_STATE", put("groups.1", null)],
    ["a group without params", "BAD_STATE", put("groups.1.params", undefined)],
    ["state that no group lists", "BAD_STATE", (given) => put("state.d", given.state.c)(given)],
    ["numbers for names that its state does not have", "BAD_STATE", put("groups.1.params", [1])],
    ["too many parameters", "BAD_STATE", put("groups.1.params", ["c", "d"])],
    ["another name", "BAD_STATE", put("groups.1.params", ["d"])],
    ["a name twice", "BAD_STATE", put("groups.0.params", ["a", "a"])],
    ["an option out of range", "BAD_STATE", put("groups.1.momentum", -1)],
    ["an option of another kind", "BAD_STATE", put("groups.1.momentum", "0.9")],
    ["an entry that is null", "BAD_STATE", put("state.c", null)],
    ["no step", "BAD_STATE", put("state.c.step", undefined)],
    ["a fractional step", "BAD_STATE", put("state.c.step", 1.5)],
    ["a negative step", "BAD_STATE", put("state.c.step", -1)],
    ["a tensor missing", "BAD_STATE", put("state.c", { step: 1 })],
    ["an array for a tensor", "BAD_STATE", put("state.c.velocity", [1])],
    ["a tensor of another shape", "BAD_STATE", put("state.c.velocity", zeros([2]))],
    ["a disposed tensor", "DISPOSED", put("state.c.velocity", disposed())],
    ["state without what amsgrad and the like need", "BAD_STATE", put("groups.0.averaged", true)],
  ])("%s", (_, code, edit) => {
    const [saved, ours] = [build(), build()];
    saved.run(0, 3);
    ours.run(0, 1);
    const before = [contents(ours.optimizer.stateDict()), ...ours.params.map(String)];
    const { groups, state } = saved.optimizer.stateDict();
    const copy = {
      groups,
      state: Object.fromEntries(Object.entries(state).map(([name, entry]) => [name, { ...entry }])),
    };
    expectCode(code, () => ours.optimizer.loadStateDict(edit(copy) as OptimizerState));
    expect([contents(ours.optimizer.stateDict()), ...ours.params.map(String)]).toEqual(before);
    ours.run(1, 2);
  });

  it("more memory than there is", () => {
    const device = new FakeDevice();
    const saved = build();
    saved.run(0, 1);
    const ours = new Momentum([
      { params: [parameter([1, 2], { device }), parameter([[3]], { device })] },
      { params: [parameter([4], { device })] },
    ]);
    for (let left = 0; left < 3; left++) {
      device.allocationsLeft = left;
      expectCode("OUT_OF_MEMORY", () => ours.loadStateDict(saved.optimizer.stateDict()));
      expect(ours.stateDict().state).toEqual({});
    }
  });
});
