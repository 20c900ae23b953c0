// Whatever overwrites a tensor between forward and backward is rejected where a gradient needs the old elements, through every view.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor, zeros } from "../create";
import { tidy } from "../device/scope";
import { concat, conv2d, fusedAttention, gather, layerNorm, maxPool2d } from "../ops";
import { clipGradNorm, clipGradNormEach, clipGradValue } from "../optimizer/gradients/clip";
import { noGrad } from "./tape";
import type { Tensor } from "./tensor";

/** [1, 2], of which both are queries and keys. */
const attended = (x: Tensor, value: Tensor) => {
  const rows = x.reshape([2, 1]);
  return fusedAttention(rows, rows, value.reshape([2, 1]), { scale: 1, isCausal: true })!.reshape([2]);
};

const values = (x: Tensor | null) => x && [...x.dataSync()];

const views: [string, (x: Tensor) => Tensor][] = [
  ["itself", (x) => x],
  ["a part of its memory", (x) => x.alias([1], 1)],
  ["a reshape", (x) => x.reshape([1, 2])],
  ["detach()", (x) => x.detach()],
  ["a part of a reshape of detach()", (x) => x.detach().reshape([2, 1]).alias([1, 1]).to("f32")],
];

describe("backward rejects what was overwritten", () => {
  describe.each(views)("through %s", (_, view) => {
    it.each<[string, (x: Tensor) => void]>([
      ["set with data", (x) => x.set(new Float32Array(x.size))],
      ["set with a tensor", (x) => x.set(zeros(x.shape))],
      ["set with another dtype", (x) => x.set(zeros(x.shape, { dtype: "f64" }))],
    ])("by %s", (_, overwrite) => {
      const [x, w] = [parameter([1, 2]), parameter([3, 4])];
      const loss = x.mul(w).sum();
      overwrite(view(w));
      expectCode("CHANGED", () => loss.backward());
      expect([x.grad, w.grad]).toEqual([null, null]);
    });

    it("by a step of an optimizer that trains the view", () => {
      const [x, w] = [parameter([1, 2]), parameter([3, 4])];
      const trained = view(w).detach();
      trained.grad = zeros(trained.shape);
      const loss = x.mul(w).sum();
      new Momentum([trained]).step();
      expectCode("CHANGED", () => loss.backward());
    });
  });

  it.each<[string, (w: Tensor, optimizer: Momentum) => void]>([
    ["clipGradNorm", (w) => clipGradNorm([w], 0.1)],
    ["clipGradNormEach", (w) => clipGradNormEach([w], 0.1)],
    ["clipGradValue", (w) => clipGradValue([w], 0.1)],
    ["zeroGrad in place", (_, optimizer) => optimizer.zeroGrad({ setToNull: false })],
    ["another backward", (w) => w.sum().backward()],
  ])("of a gradient by %s", (_, overwrite) => {
    const [x, w] = [parameter([1, 2]), parameter([3, 4])];
    w.sum().backward();
    const loss = x.mul(w.grad!).sum();
    overwrite(w, new Momentum([w]));
    expectCode("CHANGED", () => loss.backward());
  });

  it("of optimizer state by the next step", () => {
    const [x, w] = [parameter([1, 2]), parameter([3, 4])];
    w.grad = tensor([1, 1]);
    const optimizer = new Momentum([w]);
    optimizer.step();
    const loss = x.mul(optimizer.stateDict().state["0"]!.velocity as Tensor).sum();
    optimizer.step();
    expectCode("CHANGED", () => loss.backward());
  });

  it("of a gradient that the same backward has added to", () => {
    const x = parameter([1, 2]);
    x.grad = tensor([5, 5]);
    const first = x.mul(x.grad).sum();
    expectCode("CHANGED", () => first.add(x.mul(3).sum()).backward());
  });

  it.each<[string, (x: Tensor, w: Tensor) => Tensor, (x: Tensor, w: Tensor, y: Tensor) => Tensor]>([
    ["the result of exp", (x) => x.exp(), (_x, _w, y) => y],
    ["the result of softmax", (x) => x.softmax(), (_x, _w, y) => y],
    ["an exponent", (x, w) => x.pow(w), (_, w) => w],
    ["a matrix", (x, w) => x.reshape([1, 2]).matmul(w.reshape([2, 1])), (_, w) => w],
    ["the input of max", (x) => x.max(), (x) => x],
    ["a value of attention", (x, w) => attended(x, w), (_, w) => w],
    ["a weight of layerNorm", (x, w) => layerNorm(x, w), (_, w) => w],
  ])("%s", (_, op, saved) => {
    const [x, w] = [parameter([1, 2]), parameter([3, 4])];
    const y = op(x, w);
    noGrad(() => saved(x, w, y).set(zeros(saved(x, w, y).shape)));
    expectCode("CHANGED", () => y.sum().backward());
  });

  it("before any gradient changes", () => {
    const [x, w] = [parameter([1, 2]), parameter([3, 4])];
    const loss = x.mul(w).sum().add(x.mul(3).sum());
    w.set([0, 0]);
    expectCode("CHANGED", () => loss.backward());
    expect([x.grad, w.grad]).toEqual([null, null]);
  });

  it("naming the op and the tensor", () => {
    const [x, w] = [parameter([1, 2]), parameter([3, 4], { name: "weight" })];
    const loss = x.mul(w).sum();
    w.set([0, 0]);
    expect(() => loss.backward()).toThrow(/mul needs.* "weight" of shape \[2\]/);
  });

  it("by a compiled function, of what it steps and sets; its results stay", () => {
    const [x, w, count] = [parameter([1, 2]), parameter([3, 4]), zeros([2])];
    const optimizer = new Momentum([w]);
    const step = compile(
      (given: Tensor) => {
        optimizer.zeroGrad();
        const loss = w.mul(w).sum();
        loss.backward();
        optimizer.step();
        count.set(count.add(1));
        given.set(given.add(1));
        return loss;
      },
      { check: "never" },
    );
    const given = zeros([2]);
    for (let i = 0; i < 3; i++) step(given);
    for (const saved of [w, count, given]) {
      const loss = x.mul(saved).sum();
      step(given);
      expectCode("CHANGED", () => loss.backward());
    }
    const loss = x.mul(step(given)).sum();
    step(given);
    loss.backward();
  });

  it("inside a compiled function, when it is traced", () => {
    const w = parameter([3, 4]);
    const optimizer = new Momentum([w]);
    w.grad = zeros([2]);
    const body = () => {
      const loss = w.mul(w).sum();
      optimizer.step();
      loss.backward();
    };
    expectCode("CHANGED", () => compile(body)());
  });
});

describe("backward needs no more than its gradients do", () => {
  it.each<[string, (x: Tensor, w: Tensor) => Tensor, number[]]>([
    ["add", (x, w) => x.add(w), [1, 1]],
    ["mul of what needs no gradient itself", (x, w) => w.mul(2).add(x), [1, 1]],
    ["mul by a number", (x) => x.mul(2), [2, 2]],
    ["sum", (x) => x.sum(), [1, 1]],
    ["reshape and slice", (x) => x.reshape([1, 2]).slice(0, 1), [1, 1]],
    ["concat", (x, w) => concat([x, w]), [1, 1]],
    ["a cast, before a product", (x, w) => x.mul(w.to("f64")), [3, 4]],
    ["matmul, of the operand that trains", (x) => tensor([[1, 2]]).matmul(x.reshape([2, 1])), [1, 2]],
    ["gather's table", (x) => gather(x, tensor([1, 1], { dtype: "i32" })), [0, 2]],
    ["maxPool2d's image", (x) => maxPool2d(x.reshape([1, 1, 1, 2]), [1, 2]), [0, 1]],
    ["conv2d's image", (x) => conv2d(x.reshape([1, 1, 1, 2]), tensor([[[[5]]]])), [5, 5]],
  ])("%s", (_, op, gradient) => {
    const [x, w] = [parameter([1, 2]), parameter([3, 4])];
    const y = op(x, w).sum();
    x.set([8, 9]);
    w.set([8, 9]);
    y.backward();
    expect(values(x.grad)).toEqual(gradient);
  });

  it("takes 16-bit operands as they were, for it computed on wide copies", () => {
    const [x, w] = [parameter([1, 2], { dtype: "bf16" }), parameter([3, 4], { dtype: "bf16" })];
    const loss = x.mul(w).sum();
    w.set([8, 9]);
    loss.backward();
    expect(values(x.grad)).toEqual([3, 4]);
  });
});

describe("set of a result that is still to be differentiated", () => {
  it.each<[string, (x: Tensor) => Tensor]>([
    ["an op's", (x) => x.mul(2)],
    ["a view of an op's", (x) => x.mul(2).reshape([1, 2]).to("f32")],
  ])("is rejected: %s", (_, make) => {
    const y = make(parameter([1, 2]));
    expectCode("BAD_ARGUMENT", () => y.set(zeros(y.shape)));
  });

  it.each<[string, (x: Tensor) => void]>([
    ["in noGrad", (x) => noGrad(() => x.mul(2).set([0, 0]))],
    ["through detach()", (x) => x.mul(2).detach().set([0, 0])],
    [
      "views of leaves",
      (x) =>
        x
          .reshape([1, 2])
          .to("f32")
          .set([[0, 0]]),
    ],
    [
      "after backward",
      (x) => {
        const y = x.sum();
        y.backward();
        y.set(0);
      },
    ],
  ])("is taken: %s", (_, body) => {
    expect(() => body(parameter([1, 2]))).not.toThrow();
  });
});

it("a backward that throws anywhere leaves nothing behind, and the next one works", () => {
  const device = new FakeDevice();
  const [x, w] = [parameter([1, 2], { device }), parameter([3, 4], { device })];
  const data = tensor([0, 0], { device });
  const before = device.memory();
  const attempt = (allocations: number) => {
    const root = tidy(() => {
      const y = x.exp();
      const early = y.mul(data).sum();
      return x.mul(w).add(y).mul(x).sum().add(w.mul(x).sum()).add(w.add(x).sum()).add(early);
    });
    device.allocationsLeft = allocations;
    try {
      root.backward();
    } finally {
      device.allocationsLeft = Number.POSITIVE_INFINITY;
      root.dispose();
    }
  };
  let failures = 0;
  for (; failures < 100; failures++) {
    try {
      attempt(failures);
      break;
    } catch (error) {
      expect(error).toHaveProperty("code", "OUT_OF_MEMORY");
      [x.grad, w.grad] = [null, null];
      expect([failures, device.memory()]).toEqual([failures, before]);
    }
  }
  expect(failures).toBeGreaterThan(8);
  expect(values(w.grad)).toEqual([3, 7]);
});
