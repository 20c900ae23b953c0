// Muon's matrices in batches, on every exact device.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { Generator, parameter, randn, type Tensor } from "@opt/core";
import { EXACT_DEVICES, eachDevice } from "@opt/testkit";
import { expect, it } from "vitest";
import { Muon, type MuonOptions } from "./index";

const SHAPE = [3, 20, 33] as const;
let words: number[] | undefined;

await eachDevice((device) => {
  it("batches and heads have the words of each matrix alone under NorMuon, and those of js", () => {
    const [start, gradient] = [1, 2].map((seed) =>
      randn(SHAPE, { generator: new Generator(seed), device: "js" }).to(device),
    );
    const run = (of: (x: Tensor) => Tensor[], options: Partial<MuonOptions> = {}) => {
      const params = of(start!).map((x) => parameter(x.clone()));
      const optimizer = new Muon(params, { lr: 0.1, neuronBeta: 0.75, nsSteps: 2, ...options });
      for (let t = 1; t <= 3; t++) {
        of(gradient!.mul(1 / t)).forEach((grad, i) => {
          params[i]!.grad = grad.clone();
        });
        optimizer.step();
      }
      return params.flatMap((param) => [...param.dataSync()]);
    };
    const expected = run((x) => [0, 1, 2].map((i) => x.at(i)));
    words ??= expected;
    expect(expected).toEqual(words);
    expect(run((x) => [x])).toEqual(expected);
    const tall = (x: Tensor) => [x.reshape([60, 33])];
    expect(run(tall, { heads: 3 })).toEqual(expected);
    expect(run(tall)).not.toEqual(expected);
  });
}, EXACT_DEVICES);
