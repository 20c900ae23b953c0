// grad(), and what backward can be told: the graph kept, the graph of gradients, as PyTorch's.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Momentum } from "../testing/momentum";
import { grad } from "./autograd";
import { compile } from "./compile/compile";
import { parameter, tensor } from "./create";
import { init } from "./device/registry";
import { tidy } from "./device/scope";
import { avgPool2d, hardtanh, leakyRelu, maxPool2d, pad, prelu, prod, relu6, round, sort, where } from "./ops";
import { clipGradNorm } from "./optimizer/gradients/clip";
import { noGrad } from "./tensor/tape";
import type { Tensor } from "./tensor/tensor";

const device = await init("js");
const numbers = (x: Tensor) => [...x.dataSync()];

/** Compiled it is what it is eagerly. */
function expectCompiledAsRun(start: () => { x: Tensor; body: () => void }): void {
  const eager = start();
  for (let i = 0; i < 6; i++) eager.body();
  for (const check of ["never", "spaced"] as const) {
    const { x, body } = start();
    const compiled = compile(body, { check });
    for (let i = 0; i < 6; i++) compiled();
    expect(numbers(x)).toEqual(numbers(eager.x));
    compiled.dispose();
  }
}

describe("grad", () => {
  it("gives gradients by leaves and by results on the way, and changes no .grad", () => {
    const [a, b] = [parameter([1, 2]), parameter([3, 4])];
    const middle = a.mul(b);
    const output = middle.mul(a).sum(); // a^2 b
    const [ofA, ofMiddle, ofB] = grad(output, [a, middle, b]) as [Tensor, Tensor, Tensor];
    expect([ofA, ofMiddle, ofB].map(numbers)).toEqual([
      [6, 16],
      [1, 2],
      [1, 4],
    ]);
    expect([a.grad, b.grad]).toEqual([null, null]);
  });

  it("takes a gradient of the output, the output itself, and an input twice: each result is one's own", () => {
    const x = parameter([1, 2]);
    const y = x.mul(3);
    const gradient = tensor([10, 20]);
    const [own, first, second] = grad(y, [y, x, x], { gradient }) as [Tensor, Tensor, Tensor];
    expect([own, first, second].map(numbers)).toEqual([
      [10, 20],
      [30, 60],
      [30, 60],
    ]);
    first.set([0, 0]);
    own.set([0, 0]);
    expect([numbers(second), numbers(gradient)]).toEqual([
      [30, 60],
      [10, 20],
    ]);
    expect(grad(x, [x], { gradient }).map(numbers)).toEqual([[10, 20]]);
  });

  it("runs through no more of the tape than it needs, and frees no more", () => {
    const [a, b] = [parameter([2]), parameter([5])];
    const left = a.mul(a);
    const right = b.mul(b);
    const output = left.mul(right).sum();
    expect(numbers(grad(output, [left])[0]!)).toEqual([25]);
    left.sum().backward();
    right.sum().backward();
    expect([a.grad!, b.grad!].map(numbers)).toEqual([[4], [10]]);
  });

  it("differentiates again and again: x^4", () => {
    const x = parameter([2], { dtype: "f64" });
    let y = x.pow(4).sum();
    const orders = [32, 48, 48, 24].map((expected) => {
      [y] = grad(y, [x], { createGraph: true }).map((g) => g.sum()) as [Tensor];
      return [Number(y), expected];
    });
    for (const [ours, expected] of orders) expect(ours).toBeCloseTo(expected!, 10);
  });

  it("differentiates by the gradient that was given", () => {
    const [x, v] = [parameter([1, 2]), parameter([3, 4])];
    const [product] = grad(x.mul(x), [x], { gradient: v, createGraph: true });
    expect(grad(product!.sum(), [v]).map(numbers)).toEqual([[2, 4]]);
  });

  it("with allowUnused gives null for what the output was not computed from", () => {
    const [x, other] = [parameter([1, 2]), parameter([1])];
    const [slope, none] = grad(x.mul(x).sum(), [x, other], { allowUnused: true });
    expect([numbers(slope!), none]).toEqual([[2, 4], null]);
    expectCode("BAD_ARGUMENT", () => grad(x.sum(), [x], { allowUnused: 1 } as never));
    expectCode("NO_GRADIENT", () => grad(x.sum(), [tensor([1])], { allowUnused: true }));
    expectCode("NO_GRADIENT", () => grad(x.sum(), [other], { allowUnused: false }));
  });

  it("rejects what it cannot give, and leaves nothing behind", () => {
    const [x, other] = [parameter([1, 2]), parameter([1])];
    const before = device.memory().tensors;
    tidy(() => {
      const loss = x.mul(x).sum();
      expectCode("NO_GRADIENT", () => grad(loss, [other], { retainGraph: true }));
      expectCode("NO_GRADIENT", () => grad(loss, [tensor([1])]));
      expectCode("NO_GRADIENT", () => grad(x.mul(x), [x]));
      expectCode("BAD_ARGUMENT", () => grad(loss, x as never));
      expectCode("BAD_ARGUMENT", () => grad(loss, [1] as never));
      expectCode("BAD_ARGUMENT", () => grad(1 as never, [x]));
      expectCode("BAD_ARGUMENT", () => grad(loss, [x], { createGraf: true } as never));
      expectCode("BAD_SHAPE", () => grad(loss, [x], { gradient: tensor([1, 2]) }));
      grad(loss, [x]);
      expectCode("NO_GRADIENT", () => grad(loss, [x]));
      expectCode("BAD_ARGUMENT", () => loss.backward(undefined, { retain: true } as never));
    });
    expect(device.memory().tensors).toBe(before);
  });

  it("keeps the graph with retainGraph, for a second gradient of the same output", () => {
    const x = parameter([1, 2]);
    const loss = x.mul(x).sum();
    expect(numbers(grad(loss, [x], { retainGraph: true })[0])).toEqual([2, 4]);
    expect(numbers(grad(loss, [x])[0])).toEqual([2, 4]);
  });

  it("of no inputs is nothing", () => expect(grad(parameter([1]).sum(), [])).toEqual([]));

  it("rejects what was overwritten, also between the first gradient and the second", () => {
    const x = parameter([1, 2]);
    const [slope] = grad(x.pow(3).sum(), [x], { createGraph: true });
    noGrad(() => x.set([5, 5]));
    expectCode("CHANGED", () => grad(slope!.sum(), [x]));
  });
});

describe("backward", () => {
  it("keeps the graph where it is told to", () => {
    const x = parameter([3]);
    const loss = x.mul(x).sum();
    loss.backward(undefined, { retainGraph: true });
    loss.backward();
    expect(numbers(x.grad!)).toEqual([12]);
    expectCode("NO_GRADIENT", () => loss.backward());
  });

  it("with createGraph leaves gradients that can be differentiated, also where they add up", () => {
    const x = parameter([3]);
    x.mul(2).sum().backward();
    x.pow(3).sum().backward(undefined, { createGraph: true });
    const slope = x.grad!;
    expect([slope.requiresGrad, numbers(slope)]).toEqual([true, [29]]);
    expect(grad(slope.sum(), [x]).map(numbers)).toEqual([[18]]);
  });

  it("with createGraph leaves gradients that share memory with nothing: not with each other, not with the one given", () => {
    const [a, b, c] = [parameter([1, 2]), parameter([3, 4]), parameter([5, 6])];
    const given = tensor([1, 1]);
    a.add(b).backward(given, { createGraph: true });
    c.backward(given, { createGraph: true });
    a.mul(2).sum().backward();
    clipGradNorm([c], 1e-3);
    expect([a, b].map(({ grad }) => numbers(grad!))).toEqual([
      [3, 3],
      [1, 1],
    ]);
    expect(numbers(given)).toEqual([1, 1]);
  });

  it("with createGraph adds to gradients that were cleared in place nothing of the tape before", () => {
    const x = parameter([3]);
    x.pow(3).sum().backward(undefined, { createGraph: true });
    new Momentum([x]).zeroGrad({ setToNull: false });
    expect([x.grad!.requiresGrad, numbers(x.grad!)]).toEqual([false, [0]]);
    x.pow(2).sum().backward(undefined, { createGraph: true });
    expect(grad(x.grad!.sum(), [x]).map(numbers)).toEqual([[2]]);
  });

  it("trains on a penalty of the gradient, compiled as eagerly", () => {
    const start = () => {
      const x = parameter([0.5, -1.5], { dtype: "f64" });
      const body = () => {
        const [slope] = grad(x.pow(4).sum(), [x], { createGraph: true }) as [Tensor];
        x.grad = null;
        slope.mul(slope).sum().backward();
        noGrad(() => x.set(x.detach().sub(x.grad!.mul(1e-3))));
      };
      return { x, body: () => tidy(body) };
    };
    expectCompiledAsRun(start);
  });

  it("of a gradient of pooling, compiled, is what it is eagerly", () => {
    const start = () => {
      const x = parameter([4, 1, 2, 3, 5, 6, 8, 7], { shape: [2, 1, 2, 2] });
      const body = () =>
        tidy(() => {
          const [slope] = grad(maxPool2d(x, 2).pow(3).sum(), [x], { createGraph: true }) as [Tensor];
          x.grad = null;
          slope.sum().backward();
          noGrad(() => x.set(x.detach().sub(x.grad!.mul(0.01))));
        });
      return { x, body };
    };
    expectCompiledAsRun(start);
  });

  it("with a graph of gradients leaves nothing behind in tidy", () => {
    const x = parameter([1, 2]);
    const before = device.memory().tensors;
    for (let i = 0; i < 3; i++) {
      tidy(() => {
        const loss = x.softmax().mul(x).sum();
        loss.backward(undefined, { createGraph: true });
        x.grad!.mul(x.grad!).sum().backward();
      });
      x.grad = null;
    }
    expect(device.memory().tensors).toBe(before);
  });
});

describe("gradients that are constant piece by piece", () => {
  const functions: [string, (x: Tensor) => Tensor, "zeros" | null][] = [
    ["relu", (x) => x.relu(), "zeros"],
    ["leakyRelu", (x) => leakyRelu(x, 0.2), "zeros"],
    ["relu6", relu6, "zeros"],
    ["hardtanh", (x) => hardtanh(x), "zeros"],
    ["prelu by x", (x) => prelu(x, tensor([0.25])), "zeros"],
    ["abs", (x) => x.abs(), "zeros"],
    ["norm 1", (x) => x.norm(1), "zeros"],
    ["norm Infinity", (x) => x.norm(Number.POSITIVE_INFINITY), "zeros"],
    ["maxPool2d", (x) => maxPool2d(x.reshape([1, 1, 1, 2]), [1, 2]), "zeros"],
    ["avgPool2d", (x) => avgPool2d(x.reshape([1, 1, 1, 2]), [1, 2]), "zeros"],
    ["pad by reflection", (x) => pad(x, [1, 1], { mode: "reflect" }), "zeros"],
    ["prod of one", (x) => prod(x.slice(0, 1)), "zeros"],
    ["clamp", (x) => x.clamp(-1, 1), null],
    ["maximum", (x) => x.maximum(0), null],
    ["max", (x) => x.max(), null],
    ["sort", (x) => sort(x).values, null],
    ["round", (x) => round(x), null],
    ["where", (x) => where(x.gt(0), x, 0), null],
    ["pad by a number", (x) => pad(x, [1, 1]), null],
  ];

  // As PyTorch 2.13: an optimizer steps by zeros, and skips what has no gradient.
  it.each(functions)("have the gradient of PyTorch: %s", (_, f, expected) => {
    const [x, w, b] = [tensor([1, -2], { requiresGrad: true }), parameter([3, 4]), parameter([0.5, 0.5])];
    const [g] = grad(f(x.mul(w).add(b)).sum(), [x], { createGraph: true });
    g.square().sum().backward();
    expect(b.grad?.tolist() ?? null).toEqual(expected && [0, 0]);
    expect(w.grad).not.toBe(null);
    expect(x.grad?.tolist() ?? null).toEqual(expected && [0, 0]);
  });

  it("are compiled as run", () => {
    expectCompiledAsRun(() => {
      const [x, b] = [parameter([1, -2]), parameter([0.5, 0.5])];
      const body = () => {
        const [g] = grad(leakyRelu(x.mul(3).add(b)).sum(), [x], { createGraph: true });
        g.square().sum().backward();
        noGrad(() => x.set(x.add(b.grad!).sub(x.grad!.mul(0.1)).add(1)));
        x.grad = null;
        b.grad = null;
      };
      return { x, body };
    });
  });
});
