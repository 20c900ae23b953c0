/** Calls of activations, of which PyTorch knows the values, the gradients and their gradients. */
import type { Tensor } from "@opt/core";
import type { TorchCall } from "@opt/testkit";
import {
  ELU,
  Hardswish,
  Hardtanh,
  type Layer,
  LogSigmoid,
  LogSoftmax,
  Mish,
  PReLU,
  ReLU6,
  SELU,
  Softmax,
} from "../../src/index";
import { holding, RandomInputs } from "../random-inputs";

/** Each activation in `count` random configurations. */
export function activationCalls(count: number): TorchCall[] {
  const make = new RandomInputs(21);
  const calls: TorchCall[] = [];
  for (let i = 0; i < count; i++) configuration(make, i, calls);
  return calls;
}

function configuration(make: RandomInputs, i: number, calls: TorchCall[]): void {
  const dtype = i % 2 === 0 ? "f64" : "f32";
  const shape = Array.from({ length: make.between(1, 4) }, () => make.between(1, 4));
  const x = make.numbers(shape, dtype, { low: -9, high: 9 });
  const name = (code: string) => `${i}: ${code} of [${shape}], ${dtype}`;
  const add = (code: string, layer: Layer) =>
    calls.push({ name: name(code), inputs: [x], code, run: (a) => layer.forward(a!), second: true });
  const [alpha, low, high] = [make.between(-3, 9) / 4, make.between(-9, 0) / 2, make.between(1, 9) / 2];
  add(`F.elu(a, ${alpha})`, new ELU(alpha));
  add(`F.hardtanh(a, ${low}, ${high})`, new Hardtanh(low, high));
  add("F.selu(a)", new SELU());
  add("F.relu6(a)", new ReLU6());
  add("F.hardswish(a)", new Hardswish());
  add("F.mish(a)", new Mish());
  add("F.logsigmoid(a)", new LogSigmoid());
  const axis = make.between(-shape.length, shape.length - 1);
  add(`F.softmax(a, ${axis})`, new Softmax(axis));
  add(`F.log_softmax(a, ${axis})`, new LogSoftmax(axis));
  const slopes = make.numbers([make.flip() ? 1 : (shape[1] ?? 1)], dtype);
  const layer = new PReLU(slopes.shape[0], { dtype });
  calls.push({
    name: name("F.prelu(a, b)"),
    inputs: [x, slopes],
    code: "F.prelu(a, b)",
    run: (a, b) => holding(layer, { weight: b }).forward(a!),
    second: true,
  });
}

/** At kinks, far out and at infinity. */
const edges = [-1000, -89, -6, -3, -1, -1e-20, 0, 1e-20, 1, 3, 6, 89, 1000, Infinity, -Infinity];
const EDGES: readonly [string, Layer][] = [
  ["F.elu(a)", new ELU()],
  ["F.hardtanh(a)", new Hardtanh()],
  ["F.relu6(a)", new ReLU6()],
  ["F.selu(a)", new SELU()],
  ["F.hardswish(a)", new Hardswish()],
  ["F.mish(a)", new Mish()],
  ["F.logsigmoid(a)", new LogSigmoid()],
];
export const activationsAtEdges: readonly TorchCall[] = EDGES.flatMap(([code, layer]) =>
  (["f64", "f32"] as const).map((dtype) => {
    const inputs = [{ values: edges, shape: [edges.length], dtype, requiresGrad: true }];
    return { name: `${code} at edges, ${dtype}`, inputs, code, run: (a: Tensor) => layer.forward(a) };
  }),
);
