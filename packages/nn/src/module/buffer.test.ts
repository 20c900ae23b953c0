/** Buffers that are no part of the state, as PyTorch's `register_buffer(..., persistent=False)`. */
import { ones, parameter, type Tensor, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { buffer } from "./buffer";
import { functionalCall } from "./functional-call";
import { Module } from "./module";

class Masked extends Module {
  readonly scale = parameter([2, 2]);
  mask = buffer(tensor([1, 0]), { persistent: false });
  shift = buffer(tensor([5, 5]));
  readonly list = [buffer(tensor([3]), { persistent: false })];
  forward(x: Tensor): Tensor {
    return x.mul(this.scale).mul(this.mask).add(this.shift);
  }
}
const names = (pairs: Iterable<[string, unknown]>) => [...pairs].map(([name]) => name);

it("are left out of the state, and are buffers", () => {
  const model = new Masked();
  expect(Object.keys(model.stateDict())).toEqual(["scale", "shift"]);
  expect(names(model.namedTensors())).toEqual(["scale", "shift"]);
  expect(names(model.namedBuffers())).toEqual(["mask", "shift", "list.0"]);
  expect(names(model.namedParameters())).toEqual(["scale"]);
  model.loadStateDict({ scale: ones([2]), shift: zeros([2]) });
  expect([...model.forward(tensor([3, 4])).dataSync()]).toEqual([3, 0]);
});

it("follow to(), and stay out of the state", () => {
  const model = new Masked().to("f64");
  expect([model.mask.dtype, model.list[0]!.dtype]).toEqual(["f64", "f64"]);
  expect(Object.keys(model.stateDict())).toEqual(["scale", "shift"]);
  expect([...model.forward(tensor([3, 4], { dtype: "f64" })).dataSync()]).toEqual([11, 5]);
});

it("have successors out of the state, unless these say otherwise", () => {
  const model = new Masked();
  model.stateDict();
  model.mask = model.mask.mul(2);
  expect(Object.keys(model.stateDict())).toEqual(["scale", "shift"]);
  model.mask = buffer(tensor([1, 1]), { persistent: true });
  expect(Object.keys(model.stateDict())).toEqual(["scale", "mask", "shift"]);
});

it("are replaced by name in a functional call", () => {
  const model = new Masked();
  const output = functionalCall(model, { mask: tensor([0, 1]) }, tensor([3, 4]));
  expect([...output.dataSync()]).toEqual([5, 13]);
  expect([...model.mask.dataSync()]).toEqual([1, 0]);
});

it("what is no tensor and what requires a gradient is rejected", () => {
  expectCode("BAD_ARGUMENT", () => buffer([1] as never));
  expectCode("BAD_ARGUMENT", () => buffer(parameter([1])));
  expectCode("BAD_ARGUMENT", () => buffer(tensor([1]), { persistent: 1 as never }));
});
