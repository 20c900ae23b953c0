// Matrices of one shape come in one product: the words of each alone, on every exact device.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { Generator, parameter, randn, type Tensor } from "@opt/core";
import { EXACT_DEVICES, eachDevice } from "@opt/testkit";
import { expect, it } from "vitest";
import { Muon } from "./index";

/** Parameters after three steps. */
function stepped(starts: readonly Tensor[], gradients: readonly Tensor[]): Tensor[] {
  const params = starts.map((start) => parameter(start.clone()));
  const optimizer = new Muon(params, { lr: 0.1 });
  for (let t = 1; t <= 3; t++) {
    for (const [i, param] of params.entries()) param.grad = gradients[i]!.mul(1 / t);
    optimizer.step();
  }
  return params;
}

await eachDevice((device) => {
  const drawn = (seed: number, ...shapes: number[][]) => {
    const generator = new Generator(seed);
    return shapes.map((shape) => randn(shape, { generator, device: device.name }));
  };

  it.each([
    [
      [16, 16],
      [16, 16],
      [5, 3],
      [16, 16],
      [3, 5],
      [5, 3],
    ],
    [
      [70, 33],
      [70, 33],
      [70, 33],
    ],
    [
      [1, 4],
      [1, 4],
    ],
  ])("matrices of one step have the words of each alone: %j", (...shapes) => {
    const [starts, gradients] = [drawn(1, ...shapes), drawn(2, ...shapes)];
    const all = stepped(starts, gradients);
    for (const [i, param] of all.entries()) {
      const [alone] = stepped([starts[i]!], [gradients[i]!]);
      expect(param.tolist()).toEqual(alone!.tolist());
    }
  });

  it("a batch of matrices steps as its matrices do, and filters as one matrix", () => {
    const shapes = [
      [3, 4, 6],
      [5, 2, 3, 3],
    ];
    const [starts, gradients] = [drawn(3, ...shapes), drawn(4, ...shapes)];
    const [batch, filters] = stepped(starts, gradients);
    for (let i = 0; i < 3; i++) {
      const one = (x: Tensor) => [x.slice(i, i + 1).reshape([4, 6])];
      const [alone] = stepped(one(starts[0]!), one(gradients[0]!));
      expect([...batch!.slice(i, i + 1).dataSync()]).toEqual([...alone!.dataSync()]);
    }
    const [matrix] = stepped([starts[1]!.reshape([5, 18])], [gradients[1]!.reshape([5, 18])]);
    expect([...filters!.dataSync()]).toEqual([...matrix!.dataSync()]);
  });
}, EXACT_DEVICES);
