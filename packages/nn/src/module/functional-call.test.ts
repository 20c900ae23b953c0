import { grad, parameter, type Tensor, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { BatchNorm1d, Embedding, functionalCall, Linear, Module, Sequential } from "../index";

const x = () => tensor([[1, 2]]);
const numbers = (tensor: Tensor) => [...tensor.dataSync()];

/** Tensors wherever a module may hold them. */
class Everywhere extends Module {
  readonly own = parameter([1]);
  readonly list = [parameter([2])];
  readonly map = new Map([["a", parameter([3])]]);
  readonly set = new Set([parameter([4]), parameter([5])]);
  readonly deep = { buffer: tensor([6]) };

  forward(): Tensor[] {
    return [this.own, this.list[0]!, this.map.get("a")!, ...this.set, this.deep.buffer];
  }
}

describe("functionalCall", () => {
  it("puts tensors in place of those of the same names, and what was there back", () => {
    const model = new Everywhere();
    const names = model.namedTensors().map(([name]) => name);
    expect(names).toEqual(["own", "list.0", "map.a", "set.0", "set.1", "deep.buffer"]);
    const given = Object.fromEntries(names.map((name, i) => [name, tensor([10 + i])]));
    const before = model.forward();
    const descriptors = Object.getOwnPropertyDescriptors(model);
    expect(functionalCall(model, given)).toEqual(Object.values(given));
    expect(model.forward()).toEqual(before);
    expect(Object.getOwnPropertyDescriptors(model)).toEqual(descriptors);
    const one = functionalCall(model, { "set.0": given.own! });
    expect(one.map((tensor, i) => tensor === before[i])).toEqual([true, true, true, false, true, true]);
  });

  it("keeps what was not named, and holds parameters as before", () => {
    const model = new Linear(2, 1);
    model.weight.set([[3, 4]]);
    model.bias!.set([5]);
    expect(numbers(functionalCall(model, { weight: tensor([[1, 1]]) }, x()))).toEqual([8]);
    expectCode("BAD_ARGUMENT", () => Object.assign(model, { weight: zeros([1, 2]) }));
    expect(model.parameters().length).toBe(2);
  });

  it("has gradients of the given tensors, and second ones: a step of MAML", () => {
    const model = new Linear(1, 1, { bias: false });
    const weight = parameter([[2]]);
    // inner loss (w x)^2 at x = 3: gradient 18 w, adapted w - 0.01 * 18 w = 0.82 w; outer loss (0.82 w)^2: gradient 2 * 0.82^2 w
    const inner = functionalCall(model, { weight }, tensor([[3]]));
    const [gradient] = grad(inner.mul(inner).sum(), [weight], { createGraph: true });
    const outer = functionalCall(model, { weight: weight.sub(gradient!.mul(0.01)) }, tensor([[1]]));
    outer.mul(outer).sum().backward();
    expect(numbers(weight.grad!)[0]).toBeCloseTo(2 * 0.82 ** 2 * 2, 5);
    expect(model.weight.grad).toBeNull();
  });

  it("replaces tied tensors by one of their names", () => {
    const [table, head] = [new Embedding(2, 1), new Linear(1, 2, { bias: false })];
    head.weight = table.weight;
    class Tied extends Module {
      readonly table = table;
      readonly head = head;
      forward(indices: Tensor): Tensor {
        return this.head.forward(this.table.forward(indices));
      }
    }
    const weight = tensor([[2], [3]]);
    const indices = tensor([1], { dtype: "i32" });
    expect(numbers(functionalCall(new Tied(), { "head.weight": weight }, indices))).toEqual([6, 9]);
    expect(head.weight).toBe(table.weight);
    expectCode("BAD_ARGUMENT", () =>
      functionalCall(new Tied(), { "head.weight": weight, "table.weight": zeros([2, 1]) }, indices),
    );
  });

  it("lets training mode write into the buffers that it is given", () => {
    const model = new BatchNorm1d(1);
    const mean = tensor([0]);
    functionalCall(model, { running_mean: mean }, tensor([[1], [3]]));
    expect(numbers(mean)[0]).toBeCloseTo(0.2);
    expect(numbers(model.running_mean!)).toEqual([0]);
  });

  it("puts everything back where forward throws", () => {
    const model = new Sequential(new Linear(2, 1), new Linear(2, 1));
    const before = model.namedTensors().map(([, tensor]) => tensor);
    expectCode("BAD_SHAPE", () => functionalCall(model, { "0.weight": zeros([1, 2]) }, x()));
    expect(model.namedTensors().map(([, tensor]) => tensor)).toEqual(before);
  });

  it("rejects names that the module lacks", () => {
    expectCode("BAD_ARGUMENT", () => functionalCall(new Linear(2, 1), { weights: zeros([1, 2]) }, x()));
  });
});
