/** The same layer in both libraries, called with the same tensors in place of its parameters and buffers. */
import type { Device, DType, Tensor } from "@opt/core";
import type { CallInput, TorchCall } from "@opt/testkit";
import { functionalCall } from "../src/module/functional-call";
import type { Module } from "../src/module/module";
import type { RandomInputs } from "./random-inputs";

export interface LayerCall<M extends Module> {
  readonly name: string;
  /** Makes PyTorch's layer. */
  readonly torch: string;
  readonly make: (place: { readonly dtype: DType; readonly device?: Device }) => M;
  readonly dtype: "f32" | "f64";
  /** What forward gets, as a, b, c, ... */
  readonly inputs: readonly CallInput[];
  /** Python's arguments, for example "a, b, is_causal=True"; without them a is the only one. */
  readonly args?: string;
  /** Python's list of results, from y. */
  readonly results?: string;
  /** Calls the layer, by default with the first input. */
  readonly forward?: (
    call: (...inputs: Parameters<M["forward"]>) => ReturnType<M["forward"]>,
    ...inputs: Tensor[]
  ) => unknown;
  /** Makes buffers, by how their names end: they are results too. By default all tensors are random parameters. */
  readonly buffers?: Readonly<Record<string, (shape: readonly number[]) => CallInput>>;
  readonly training?: boolean;
  readonly second?: boolean;
}

const TOLERANCE = { f32: { absolute: 1e-5, relative: 1e-4 }, f64: { absolute: 1e-10, relative: 1e-10 } } as const;

export function layerCall<M extends Module>(random: RandomInputs, call: LayerCall<M>): TorchCall {
  const { name, torch, make, dtype, inputs, args = "a", results = "[y]", buffers = {}, training = true } = call;
  const { forward = (call, x) => call(...([x] as unknown as Parameters<M["forward"]>)) } = call;
  const own = make({ dtype }).namedTensors();
  const given = own.map(([name, { shape }]) => {
    const buffer = Object.keys(buffers).find((end) => name.endsWith(end));
    return buffer === undefined ? random.numbers(shape, dtype, { low: -0.7, high: 0.7 }) : buffers[buffer]!(shape);
  });
  const names = own.map(([name]) => name);
  const buffered = names.filter((name) => Object.keys(buffers).some((end) => name.endsWith(end)));
  const layers = new Map<Device, M>();
  return {
    name: `${name}, ${dtype}`,
    inputs: [...inputs, ...given],
    code: [
      `m = ${torch}.to(torch.${dtype === "f32" ? "float32" : "float64"}).train(${training ? "True" : "False"})`,
      `given = dict(zip(${JSON.stringify(names)}, inputs[${inputs.length}:]))`,
      "call = lambda *args, **options: torch.func.functional_call(m, given, args, options, strict=True)",
      `y = call(${args})`,
      `[*(${results}), *[given[name] for name in ${JSON.stringify(buffered)}]]`,
    ].join(";;"),
    run: (...tensors) => {
      const { device } = tensors[0]!;
      const layer = layers.get(device) ?? make({ dtype, device }).train(training);
      layers.set(device, layer);
      const state = Object.fromEntries(names.map((name, i) => [name, tensors[inputs.length + i]!]));
      const call = (...given: Parameters<M["forward"]>) => functionalCall(layer, state, ...given);
      const outputs = [forward(call, ...tensors.slice(0, inputs.length))].flat(2) as Tensor[];
      return [...outputs, ...buffered.map((name) => state[name]!)];
    },
    tolerance: TOLERANCE[dtype],
    ...(call.second === undefined ? {} : { second: call.second }),
  };
}
