// Layers that some devices compute in one kernel and others op by op: what backward needs is the same on all of them.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { type Device, Generator, noGrad, parameter, rand, type Tensor, zeros } from "@opt/core";
import { EXACT_DEVICES, eachDevice, expectCode } from "@opt/testkit";
import { it } from "vitest";
import { BatchNorm1d, LSTM, scaledDotProductAttention } from "@opt/nn";

const input = (device: Device) => parameter(rand([4, 3, 2], { generator: new Generator(1), device }));

/** The tensor that is overwritten, and the result. */
type Case = (device: Device) => [overwritten: Tensor, result: Tensor];

const lstm = (device: Device, overwritten: (layer: LSTM, y: Tensor) => Tensor): [Tensor, Tensor] => {
  const layer = new LSTM(2, 3, { device });
  const [y] = layer.forward(input(device));
  return [overwritten(layer, y), y];
};

const CASES: readonly [string, Case][] = [
  ["the input of BatchNorm", (on) => ((x) => [x, new BatchNorm1d(3, { device: on }).forward(x)])(input(on))],
  ["a query", (on) => ((x) => [x, scaledDotProductAttention(x, input(on), input(on))])(input(on))],
  ["the recurrent weight of an LSTM", (on) => lstm(on, (layer) => layer.namedTensors()[1]![1])],
  ["what an LSTM gave", (on) => lstm(on, (_, y) => y)],
];

await eachDevice((device) => {
  it.each(CASES)("backward rejects %s that was overwritten", (_, make) => {
    const [overwritten, result] = make(device);
    const loss = result.sum();
    noGrad(() => overwritten.set(zeros(overwritten.shape, { device })));
    expectCode("CHANGED", () => loss.backward());
  });
}, EXACT_DEVICES);
