// LSTM and GRU in random configurations, in f32 and f64, against PyTorch: results, last states and gradients.
import type { Tensor } from "@opt/core";
import { askTorch, type CallInput, expectAnswer, type TorchCall, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";
import { GRU, LSTM } from "../index";
import { holding, RandomInputs } from "../testing/random-inputs";

const make = new RandomInputs(14);
const calls: TorchCall[] = [];
const python = (value: boolean) => (value ? "True" : "False");
const loose = { f32: { absolute: 1e-5, relative: 1e-4 }, f64: { absolute: 1e-10, relative: 1e-10 } } as const;
const LETTERS = [..."abcdefghijklmnop"];

for (let i = 0; i < 200; i++) {
  const dtype = i % 2 === 0 ? "f32" : "f64";
  const isLstm = make.flip();
  const [input, hidden, numLayers] = [make.between(1, 3), make.between(1, 3), make.between(1, 2)];
  const [bias, batchFirst, single, begun] = [make.flip(), make.flip(), make.flip(), make.flip()];
  // Letters are few: two directions have one layer.
  const bidirectional = numLayers === 1 && make.flip();
  const [length, batch] = [make.between(1, 4), make.between(1, 3)];
  const shape = single ? [length, input] : batchFirst ? [batch, length, input] : [length, batch, input];
  const rows = numLayers * (bidirectional ? 2 : 1);
  const state = make.numbers(single ? [rows, hidden] : [rows, batch, hidden], dtype);
  const options = { numLayers, bias, batchFirst, bidirectional, dtype } as const;
  const made = isLstm ? new LSTM(input, hidden, options) : new GRU(input, hidden, options);
  const weights = made
    .namedTensors()
    .map(([name, tensor]): [string, CallInput] => [name, make.numbers(tensor.shape, dtype)]);
  const inputs = [
    make.numbers(shape, dtype),
    state,
    { ...state, requiresGrad: true },
    ...weights.map(([, given]) => given),
  ];
  const named = weights.map(([name], w) => [name, LETTERS[w + 3]!] as const);
  const kind = isLstm ? "LSTM" : "GRU";
  const first = begun ? (isLstm ? ", (b, c)" : ", b") : "";
  calls.push({
    name: `${i}: ${kind} ${input} ${hidden}, ${numLayers} layers${bidirectional ? ", both ways" : ""}${bias ? "" : ", no bias"}${begun ? ", begun" : ""} [${shape}], ${dtype}`,
    inputs,
    code: [
      `m = nn.${kind}(${input}, ${hidden}, ${numLayers}, bias=${python(bias)}, batch_first=${python(batchFirst)}, bidirectional=${python(bidirectional)}).to(a.dtype)`,
      `given = {${named.map(([name, letter]) => `"${name}": ${letter}`).join(", ")}}`,
      `y, s = torch.func.functional_call(m, given, (a${first}))`.replace("(a)", "(a,)"),
      isLstm ? "[y, s[0], s[1]]" : "[y, s]",
    ].join(";;"),
    run: (...given: Tensor[]) => {
      const [x, h, c, ...rest] = given as [Tensor, Tensor, Tensor, ...Tensor[]];
      const own = Object.fromEntries(named.map(([name], w) => [name, rest[w]]));
      if (!isLstm) {
        const layer = holding(new GRU(input, hidden, options), own);
        return layer.forward(x, begun ? h : undefined);
      }
      const layer = holding(new LSTM(input, hidden, options), own);
      const [y, [hn, cn]] = layer.forward(x, begun ? [h, c] : undefined);
      return [y, hn, cn];
    },
    tolerance: loose[dtype],
  });
}

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});
