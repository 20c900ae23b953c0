import { inspect } from "node:util";
import { expectCode, expectRemovable } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { descent, descentBy } from "../../testing/descent";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { parameter, tensor, zeros } from "../create";
import type { ErrorCode } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";
import type { BaseOptions } from "./algorithm";
import { l2 } from "./gradients/regularizer";

const values = (x: Tensor) => [...x.dataSync()];
const rule = descent("descent", "rate", 1);

/** Gradients for the parameters; null leaves one without. */
function give(params: readonly Tensor[], gradients: readonly (number | null)[]): void {
  params.forEach((param, i) => {
    const gradient = gradients[i] ?? null;
    param.grad =
      gradient === null
        ? null
        : tensor(new Array(param.size).fill(gradient), { dtype: param.dtype, device: param.device });
  });
}

describe("an optimizer rejects", () => {
  const w = () => parameter([1, 2]);
  it.each<[string, ErrorCode, () => unknown]>([
    ["no parameters", "BAD_ARGUMENT", () => new Momentum([])],
    ["one bare tensor", "BAD_ARGUMENT", () => new Momentum(w() as never)],
    ["null among tensors", "BAD_ARGUMENT", () => new Momentum([w(), null] as never)],
    ["arrays for tensors", "BAD_ARGUMENT", () => new Momentum([[1, 2]] as never)],
    ["groups among tensors", "BAD_ARGUMENT", () => new Momentum([w(), { params: [w()] }] as never)],
    ["a group without params", "BAD_ARGUMENT", () => new Momentum([{ lr: 1 }] as never)],
    ["a name that is no text", "BAD_ARGUMENT", () => new Momentum([[3, w()]] as never)],
    ["integers", "BAD_DTYPE", () => new Momentum([tensor([1], { dtype: "i32" })])],
    ["results of computations", "BAD_ARGUMENT", () => new Momentum([w().mul(2)])],
    [
      "a parameter twice",
      "DUPLICATE",
      () => {
        const p = w();
        new Momentum([p, p]);
      },
    ],
    [
      "a parameter in two groups",
      "DUPLICATE",
      () => {
        const p = w();
        new Momentum([{ params: [p] }, { params: p }]);
      },
    ],
    [
      "a name twice",
      "DUPLICATE",
      () =>
        new Momentum([
          ["w", w()],
          ["w", w()],
        ]),
    ],
    ["an option out of range", "BAD_ARGUMENT", () => new Momentum([w()], { lr: -1 })],
    ["NaN", "BAD_ARGUMENT", () => new Momentum([w()], { lr: Number.NaN })],
    ["an option out of range in a group", "BAD_ARGUMENT", () => new Momentum([{ params: [w()], momentum: -1 }])],
    [
      "a bad penalty",
      "BAD_ARGUMENT",
      () => new Momentum([w()], { regularizer: { kind: "l3", coefficient: 1 } as never }),
    ],
  ])("%s", (_, code, make) => expectCode(code, make));

  it("a group that fails, and adds nothing of it", () => {
    const p = w();
    const optimizer = new Momentum([p]);
    expectCode("DUPLICATE", () => optimizer.addGroup({ params: [w(), p] }));
    expectCode("BAD_ARGUMENT", () => optimizer.addGroup({ params: [w()], lr: -1 }));
    expect(optimizer.groups.length).toBe(1);
    optimizer.addGroup({ params: [] });
    optimizer.addGroup({ params: new Set([w()]), lr: 5 });
    expect(optimizer.groups.map(({ lr, params }) => [lr, params.length])).toEqual([
      [0.1, 1],
      [0.1, 0],
      [5, 1],
    ]);
  });
});

it("console.log tells the options of each group, and how many parameters it has", () => {
  const groups = [
    { params: [zeros([1]), zeros([1])], regularizer: l2(0.5) },
    { params: [], lr: 1 },
  ];
  expect(inspect(new Momentum(groups))).toBe(`Momentum(
  (0): lr=0.1, momentum=0.9, maximize=false, averaged=false, regularizer={ kind, coefficient }, params=2
  (1): lr=1, momentum=0.9, maximize=false, averaged=false, params=0
)`);
});

it("console.log tells a group's options", () => {
  expect(inspect(new Momentum([zeros([1])]).groups[0])).toMatch(/lr: 0.1,\s+momentum: 0.9/);
});

describe("names are", () => {
  it.each<[string, () => Momentum, string[][]]>([
    [
      "numbers by position",
      () => new Momentum([{ params: [zeros([1]), zeros([1])] }, { params: zeros([1]) }]),
      [["0", "1"], ["2"]],
    ],
    [
      "the parameters' own",
      () => new Momentum([parameter([1], { name: "w" }), parameter([1], { name: "b" })]),
      [["w", "b"]],
    ],
    ["those given in pairs", () => new Momentum(new Map([["x", zeros([1])]])), [["x"]]],
  ])("%s", (_, make, names) => expect(make().groups.map((group) => group.names)).toEqual(names));
});

describe("step", () => {
  it("gives a parameter alone what it gives it among others, whenever they joined", () => {
    const alone = parameter([1, 2]);
    const [a, b] = [parameter([1, 2]), parameter([3])];
    const single = new Momentum([alone]);
    const both = new Momentum([b, a]);
    for (let step = 0; step < 5; step++) {
      give([alone, a, b], [step, step, step % 2 === 0 ? null : 1]);
      single.step();
      both.step();
    }
    expect(a.dataSync()).toAgreeWith(alone.dataSync());
  });

  it("runs hooks around the closure, in order, until they are removed", () => {
    const w = parameter([1]);
    const optimizer = new Momentum([w]);
    const calls: string[] = [];
    const remove = optimizer.on("beforeStep", (self) => calls.push(`before ${self === optimizer}`));
    optimizer.on("beforeStep", () => calls.push("before 2"));
    optimizer.on("afterStep", () => calls.push(`after ${values(w)[0] !== 1}`));
    const loss = optimizer.step(() => {
      calls.push("closure");
      w.mul(2).sum().backward();
      return 42;
    });
    remove();
    optimizer.step();
    expect(loss).toBe(42);
    expect(calls).toEqual(["before true", "before 2", "closure", "after true", "before 2", "after true"]);
  });

  it.each(["beforeStep", "afterStep"] as const)(
    "runs each hook %s until it is removed, in whatever order that is",
    (event) =>
      expectRemovable(() => {
        const optimizer = new Momentum([parameter([1])]);
        return { add: (hook) => optimizer.on(event, hook), call: () => optimizer.step() };
      }),
  );

  it("runs no hook for what is no closure", () => {
    const optimizer = new Momentum([parameter([1])]);
    optimizer.on("beforeStep", () => expect.unreachable());
    expectCode("BAD_ARGUMENT", () => optimizer.step(0.1 as never));
  });

  it("makes the state that an option turned on later needs", () => {
    const w = parameter([1]);
    const optimizer = new Momentum([w]);
    give([w], [1]);
    optimizer.step();
    optimizer.groups[0]!.averaged = true;
    optimizer.step();
    expect(Number(optimizer.stateDict().state["0"]!.grad_avg)).toBe(0.5);
    optimizer.groups[0]!.averaged = false;
    optimizer.step();
    expect(Number(optimizer.stateDict().state["0"]!.grad_avg)).toBe(0.5);
  });

  it("lets NaN through, and only where it is", () => {
    const params = [parameter([1, 1]), parameter([1])];
    const optimizer = new Momentum(params);
    params[0]!.grad = tensor([Number.NaN, 1]);
    params[1]!.grad = tensor([1]);
    optimizer.step();
    expect(params.map(values)).toEqual([[Number.NaN, Math.fround(0.9)], [Math.fround(0.9)]]);
  });

  it("validates options once they were set, replaced or changed in place, and no others", () => {
    let checks = 0;
    const w = parameter([1]);
    const validate = () => {
      checks++;
    };
    const pair = [1, 2];
    const optimizer = descentBy(
      { validate, rule: () => rule, defaults: { lr: 1, maximize: false, pair } as BaseOptions },
      [w],
      { clip: { value: 1 }, pair },
    );
    const [group] = optimizer.groups;
    give([w], [1]);
    const checksOf = (change: () => void) => {
      change();
      checks = 0;
      optimizer.step();
      optimizer.step();
      return checks;
    };
    const setLr = () => {
      group!.lr = 0.5;
    };
    const setLimit = () => {
      group!.clip!.value = 0.5;
    };
    const addLimit = () => {
      group!.clip!.norm = 5;
    };
    const setPart = () => {
      (group as unknown as { pair: number[] }).pair[1] = 3;
    };
    const changes = [() => {}, () => {}, setLr, setLimit, addLimit, setPart, () => {}];
    expect(changes.map(checksOf)).toEqual([1, 0, 1, 1, 1, 1, 0]);
    group!.clip!.norm = -1;
    for (let i = 0; i < 2; i++) expectCode("BAD_ARGUMENT", () => optimizer.step());
  });

  it("options of groups are nobody else's", () => {
    const optimizer = new Momentum([{ params: [parameter([1])] }, { params: [parameter([1])] }], { lr: 0.5 });
    optimizer.groups[0]!.lr = 9;
    expect([optimizer.groups[1]!.lr, new Momentum([parameter([1])]).groups[0]!.lr]).toEqual([0.5, 0.1]);
  });
});

describe("zeroGrad", () => {
  it("frees gradients, or zeroes them in place, of every dtype", () => {
    const device = new FakeDevice();
    const params = (["f32", "f64", "f16", "bf16"] as const).map((dtype) => parameter([1], { dtype, device }));
    const optimizer = new Momentum(params);
    const { tensors } = device.memory();
    for (const param of params) param.mul(3).backward(tensor([1], { dtype: param.dtype, device }));
    const gradients = params.map((param) => param.grad!);
    optimizer.zeroGrad({ setToNull: false });
    expect(params.map((param, i) => [param.grad === gradients[i], ...values(param.grad!)])).toEqual(
      params.map(() => [true, 0]),
    );
    optimizer.zeroGrad();
    expect(params.map((param) => param.grad)).toEqual([null, null, null, null]);
    expect(gradients.every((gradient) => gradient.isDisposed)).toBe(true);
    expect(device.memory().tensors).toBeLessThan(tensors + 9);
  });
});

describe("a step costs", () => {
  it("one launch for a thousand tensors, and two more for a second group and for another count", () => {
    const device = new FakeDevice();
    const params = Array.from({ length: 1000 }, (_, i) => parameter(new Float32Array(i % 7), { device }));
    const optimizer = new Momentum([{ params: params.slice(0, 900) }, { params: params.slice(900), lr: 1 }]);
    const launchesOf = (absent?: Tensor) => {
      for (const param of params) param.grad = param === absent ? null : zeros(param.shape, { device });
      device.launches.length = 0;
      optimizer.step();
      return device.launches.filter((kind) => kind === "rule").length;
    };
    expect(launchesOf(params[5])).toBe(2);
    expect(launchesOf()).toBe(3); // parameter 5 is one step behind
    device.launches.length = 0;
    optimizer.step();
    expect(device.launches).toEqual(["rule", "rule", "rule"]);
  });

  it("one block of memory for the state of a group", () => {
    const device = new FakeDevice();
    const params = Array.from({ length: 100 }, () => parameter([1, 2], { device }));
    give(
      params,
      params.map(() => 1),
    );
    device.allocationsLeft = 1;
    new Momentum(params).step();
    expect(device.allocationsLeft).toBe(0);
  });
});

it("a step after one that was rejected takes the gradients that are there", () => {
  const after = (isRejected: boolean) => {
    const [w, v] = [parameter([1, 2]), parameter([3])];
    const optimizer = new Momentum([{ params: [w] }, { params: [v] }], { lr: 0.1 });
    give([w, v], [1, 1]);
    optimizer.step();
    give([w, v], [-5, 1]);
    if (isRejected) {
      v.grad!.dispose();
      expectCode("DISPOSED", () => optimizer.step());
      give([v], [1]);
    }
    optimizer.step();
    return [w, v].map(values);
  };
  expect(after(true)).toEqual(after(false));
});

it("the state of a group lies in rows, one for each of the rule's buffers", () => {
  const device = new FakeDevice();
  const params = Array.from({ length: 3 }, () => parameter(new Float32Array(64), { device }));
  for (const param of params) param.grad = zeros(param.shape, { device });
  const optimizer = new Momentum(params, { averaged: true });
  optimizer.step();
  const { state } = optimizer.stateDict();
  const placesOf = (key: string) => params.map((_, i) => (state[i]![key] as Tensor).memorySlice().byteOffset);
  const all = [...placesOf("velocity"), ...placesOf("grad_avg")];
  expect(all.map((place) => place - Math.min(...all)).toSorted((a, b) => a - b)).toEqual([
    0, 256, 512, 768, 1024, 1280,
  ]);
  for (const key of ["velocity", "grad_avg"]) {
    const [a, b, c] = placesOf(key) as [number, number, number];
    expect([b - a, c - b]).toEqual([256, 256]);
  }
});

describe("out of memory", () => {
  it.each(["f32", "bf16"] as const)("loses nothing of %s parameters, and the step can be repeated", (dtype) => {
    const device = new FakeDevice();
    const [a, b] = [parameter([1, 2], { device, dtype }), parameter([1, 2], { device, dtype })];
    const [limited, free] = [
      new Momentum([{ params: a }, { params: [parameter([3], { device, dtype })] }]),
      new Momentum([b]),
    ];
    give([a, b, limited.groups[1]!.params[0]!], [1, 1, 1]);
    let rejections = 0;
    for (let left = 0; ; left++) {
      device.allocationsLeft = left;
      try {
        limited.step();
        break;
      } catch (error) {
        rejections++;
        expectCode("OUT_OF_MEMORY", () => {
          throw error;
        });
        device.allocationsLeft = Number.POSITIVE_INFINITY;
        expect([values(a), limited.stateDict().state]).toEqual([[1, 2], {}]);
      }
    }
    device.allocationsLeft = Number.POSITIVE_INFINITY;
    free.step();
    expect(rejections).toBeGreaterThan(0);
    expect(a.dataSync()).toAgreeWith(b.dataSync());
  });
});

describe("16-bit parameters", () => {
  it.each(["f16", "bf16"] as const)("of %s are trained in a float32 copy: small steps add up", (dtype) => {
    const w = parameter([1], { dtype });
    const optimizer = new Momentum([w], { lr: 2 ** -12, momentum: 0 });
    for (let step = 0; step < 32; step++) {
      give([w], [1]);
      optimizer.step();
    }
    expect(values(w)).toEqual([1 - 2 ** -7]);
    expect(Number(optimizer.stateDict().state["0"]!.master_param)).toBe(1 - 2 ** -7);
  });
});

describe("an option that is set where nobody reads it", () => {
  const optimizer = () => new Momentum([parameter([1, 2])], { lr: 0.1 });

  it.each(["lr", "momentum", "maximize", "clip", "regularizer", "stateDType"])(
    "%s on the optimizer is rejected",
    (name) => {
      const set = () => Object.assign(optimizer(), { [name]: null });
      expect(set).toThrow(`[Momentum] ${name} is an option of each group. Set groups[0].${name}.`);
      expectCode("BAD_ARGUMENT", set);
    },
  );

  it("an unknown name on a group is rejected", () => {
    expect(() => Object.assign(optimizer().groups[0]!, { weightdecay: 0.1 })).toThrow("not extensible");
  });

  it("every option there is can be set on a group, and is in no state while it is not", () => {
    const made = optimizer();
    const before = Object.keys(made.stateDict().groups[0]!);
    Object.assign(made.groups[0]!, { lr: 1, clip: { norm: 1 }, regularizer: l2(0.1), lazyMode: true });
    expect(Object.keys(made.stateDict().groups[0]!)).toEqual([
      ...before.slice(0, -2),
      "clip",
      "lazyMode",
      "regularizer",
      "params",
    ]);
  });
});
