import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { grad } from "../autograd";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { matmul, solve, sort, stack, tanh } from "../functions";
import { recompute } from "../recompute";
import type { Tensor } from "../tensor/tensor";
import { hessian, hvp, jacobian, jvp, vjp } from "./derivatives";
import { vmap } from "./vmap";

const x = () => tensor([1, 2, 3]);
const cube = (x: Tensor) => x.mul(x).mul(x);

describe("derivatives of functions", () => {
  it("take a tensor for a list of one", () => {
    const [y, slope] = jvp(cube, x(), tensor([1, 0, 2]));
    expect([y.tolist(), slope.tolist()]).toEqual([
      [1, 8, 27],
      [3, 0, 54],
    ]);
    expect(vjp(cube, x(), tensor([1, 0, 2]))[1].tolist()).toEqual([3, 0, 54]);
    expect(jacobian(cube, x()).tolist()).toEqual([
      [3, 0, 0],
      [0, 12, 0],
      [0, 0, 27],
    ]);
    expect(hessian((x) => cube(x).sum(), x()).tolist()).toEqual([
      [6, 0, 0],
      [0, 12, 0],
      [0, 0, 18],
    ]);
    expect(hvp((x) => cube(x).sum(), x(), tensor([1, 1, 0]))[1].tolist()).toEqual([6, 12, 0]);
  });

  it("are zeros for what the result does not depend on", () => {
    const [y, slopes] = vjp((_a: Tensor, b: Tensor) => b.detach(), [x(), x()], x());
    expect([y, ...slopes].map((each) => each.tolist())).toEqual([
      [1, 2, 3],
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect(jacobian((x) => x.slice(0, 0), x()).shape).toEqual([0, 3]);
  });

  it("stay on the tape where an input requires a gradient, or createGraph says so", () => {
    const w = parameter([2]);
    const scaled = (x: Tensor) => x.mul(x).mul(w).sum();
    const slopeOf = (options = {}) => vjp(scaled, x(), tensor(1), options)[1];
    expect(slopeOf().requiresGrad).toBe(false);
    slopeOf({ createGraph: true }).sum().backward();
    expect(w.grad?.tolist()).toEqual([12]);
    const p = parameter([1, 2, 3]);
    jacobian(cube, p).sum().backward();
    expect(p.grad?.tolist()).toEqual([6, 12, 18]);
    w.grad = null;
    for (const derived of [
      jvp(scaled, x(), x(), { createGraph: true })[1],
      jacobian(scaled, x(), { createGraph: true }).sum(),
      hessian(scaled, x(), { createGraph: true }).sum(),
      hvp(scaled, x(), x(), { createGraph: true })[1].sum(),
    ])
      derived.backward();
    expect(w.grad).toEqual(expect.objectContaining({}));
    expect((w.grad as unknown as Tensor).tolist()).toEqual([2 * 14 + 2 * 6 + 2 * 3 + 2 * 6]);
  });

  it("change no gradient of their inputs, and compile to the same words", () => {
    const w = parameter([
      [1, 2, 0],
      [0, 1, 3],
      [2, 0, 1],
    ]);
    const f = (x: Tensor) => tanh(matmul(w, x));
    const run = (x: Tensor) => [...jvp(f, x, x), jacobian(f, x)];
    const compiled = compile(run);
    const eager = run(x()).map((each) => each.tolist());
    for (let i = 0; i < 3; i++) expect(compiled(x()).map((each) => each.tolist())).toEqual(eager);
    expect(w.grad).toBeNull();
  });

  it("reject tangents of other shapes, other dtypes or another number, and results of more elements", () => {
    expectCode("BAD_SHAPE", () => jvp(cube, x(), tensor([1, 2])));
    expectCode("BAD_DTYPE", () => vjp(cube, x(), tensor([1, 2, 3], { dtype: "f64" })));
    expectCode("BAD_ARGUMENT", () => jvp((a: Tensor, b: Tensor) => a.add(b), [x(), x()], [x()] as never));
    expectCode("BAD_SHAPE", () => hessian(cube, x()));
    expectCode("BAD_SHAPE", () => hvp(cube, x(), x()));
    expectCode("BAD_ARGUMENT", () => jacobian(cube, 3 as never));
    expectCode("BAD_ARGUMENT", () => jacobian((() => 1) as never, x()));
    expectCode("BAD_ARGUMENT", () => jacobian((async () => x()) as never, x()));
    expectCode("BAD_ARGUMENT", () => jacobian(cube, x(), { create: true } as never));
    expectCode("BAD_ARGUMENT", () => jacobian(cube as () => Tensor, []));
  });
});

describe("samples", () => {
  const batch = () =>
    tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);

  it("lie along any axis, of inputs and results, in lists and objects", () => {
    const w = tensor([
      [1, 1],
      [0, 2],
    ]);
    expect(
      vmap((x: Tensor) => matmul(w, x.unsqueeze(1)).squeeze(1), { inAxes: 1, outAxes: 1 })(
        batch().transpose(),
      ).tolist(),
    ).toEqual([
      [3, 7, 11],
      [4, 8, 12],
    ]);
    const both = vmap(
      ({ a, list }: { a: Tensor; list: Tensor[] }) => ({ sum: a.add(list[0]!), product: [a.mul(list[1]!)] }),
      {
        inAxes: -2,
      },
    )({ a: batch(), list: [batch(), batch()] });
    expect(both.sum.tolist()).toEqual(batch().mul(2).tolist());
    expect(both.product[0]!.tolist()).toEqual(batch().square().tolist());
    const [first, second] = vmap((x: Tensor, y: Tensor) => [x.add(y), y] as const, {
      inAxes: [0, null],
      outAxes: [0, 1],
    })(batch(), tensor([1, 1]));
    expect(first.tolist()).toEqual([
      [2, 3],
      [4, 5],
      [6, 7],
    ]);
    expect(second.tolist()).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
  });

  it("nest", () => {
    const dots = vmap((x: Tensor) => vmap((y: Tensor) => x.mul(y).sum())(batch()))(batch());
    expect(dots.tolist()).toEqual(matmul(batch(), batch().transpose()).tolist());
    const table = vmap((x: Tensor) => vmap((y: Tensor, x: Tensor) => x.sub(y), { inAxes: [0, null] })(batch(), x))(
      batch(),
    );
    expect(table.tolist()).toEqual(batch().unsqueeze(1).sub(batch().unsqueeze(0)).tolist());
  });

  it("let gradients through, and have their own", () => {
    const w = parameter([2, 3]);
    vmap((x: Tensor) => x.mul(w).sum())(batch())
      .sum()
      .backward();
    expect(w.grad?.tolist()).toEqual([9, 12]);
    w.grad = null;
    const weights = w.detach().expand([3, 2]);
    const each = vmap((w: Tensor, x: Tensor) => {
      w.requiresGrad = true;
      return grad(w.mul(x).sum().square(), [w])[0];
    })(weights, batch());
    const alone = batch().tolist() as number[][];
    expect(each.tolist()).toEqual(alone.map(([a, b]) => [2 * (2 * a! + 3 * b!) * a!, 2 * (2 * a! + 3 * b!) * b!]));
    expect(each.requiresGrad).toBe(false);
    const [, along] = vmap((x: Tensor) => jvp((x) => x.mul(x), x, tensor([1, 0])))(batch());
    expect(along.tolist()).toEqual([
      [2, 0],
      [6, 0],
      [10, 0],
    ]);
    const curved = vmap((x: Tensor) => hessian((x) => x.mul(x).mul(x).sum(), x))(batch());
    expect(curved.shape).toEqual([3, 2, 2]);
    expect(curved.at(2).tolist()).toEqual([
      [30, 0],
      [0, 36],
    ]);
  });

  it("are run by ops at once, and one by one where an op has no rule", () => {
    const sorted = vmap((x: Tensor) => sort(x).values)(
      tensor([
        [2, 1],
        [3, 4],
      ]),
    );
    expect(sorted.tolist()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    const compiled = compile(vmap((x: Tensor) => tanh(x).sum()));
    const eager = stack([0, 1, 2].map((i) => tanh(batch().select(0, i)).sum()));
    for (let i = 0; i < 3; i++) expect(compiled(batch()).tolist()).toEqual(eager.tolist());
    expect(vmap((x: Tensor) => x.add(1))(batch().slice(0, 0)).shape).toEqual([0, 2]);
  });

  it("are neither read nor written one by one", () => {
    const with1 = (f: (x: Tensor) => unknown) => () => vmap(f as (x: Tensor) => Tensor)(batch());
    expectCode(
      "UNSUPPORTED",
      with1((x) => (x.sum().dataSync()[0]! > 1 ? x : x)),
    );
    expectCode(
      "UNSUPPORTED",
      with1((x) => x.set([1, 2])),
    );
    expectCode(
      "UNSUPPORTED",
      with1((x) =>
        x
          .mul(parameter([1, 1]))
          .sum()
          .backward(),
      ),
    );
    const w = parameter([1, 1]);
    const advice = "Compile and recompute around vmap";
    expect(with1(compile((x: Tensor) => x.exp()))).toThrow(advice);
    const again = vmap((x: Tensor) => recompute((x) => x.mul(w), x))(batch()).sum();
    expect(() => again.backward()).toThrow(advice);
    expectCode(
      "UNSUPPORTED",
      with1((x) => grad(x.mul(w).sum(), [w])[0]),
    );
    expectCode("UNSUPPORTED", () => vmap((x: Tensor) => solve(x, x))(tensor([]).reshape([0, 2, 2])));
  });

  it("are told what is wrong with the shape of one", () => {
    for (const shape of [[], [3]]) expectCode("BAD_SHAPE", () => vmap((x: Tensor) => x.expand(shape))(batch()));
    expectCode("BAD_SHAPE", () => vmap((x: Tensor) => x.reshape([3]))(batch()));
  });

  it("must be equally many, and somewhere", () => {
    const add = vmap((a: Tensor, b: Tensor) => a.add(b));
    expectCode("BAD_SHAPE", () => add(batch(), tensor([[1, 2]])));
    expectCode("BAD_ARGUMENT", () => vmap((a: Tensor) => a, { inAxes: null })(batch()));
    expectCode("BAD_ARGUMENT", () => vmap((a: Tensor) => a, { inAxes: 2 })(batch()));
    expectCode("BAD_ARGUMENT", () => vmap((a: Tensor) => a, { inAxes: [0, 1] })(batch()));
    expectCode("BAD_ARGUMENT", () => vmap((a: Tensor) => a, { outAxes: 5 })(batch()));
    expectCode("BAD_ARGUMENT", () => vmap((() => 1) as never)(batch()));
    expectCode("BAD_ARGUMENT", () => vmap((a: Tensor) => a)(1 as never));
    expectCode("BAD_ARGUMENT", () => vmap(1 as never));
    expectCode("BAD_ARGUMENT", () => vmap((a: Tensor) => a, { axes: 1 } as never));
    expectCode("BAD_ARGUMENT", () => vmap((async () => batch()) as never)(batch()));
  });
});
