/**
 * Optimizer state as TF.js saves it, named tensors in a list: `<variable>/<state>`. State is float32; counts are int32, and other numbers
 * (mu_product) the two int32 halves of a float64, so that nothing is rounded and a number is told from the state of a scalar.
 */
import { check, type ParameterStateDict, show, Tensor, tensor, tidy } from "@opt/core";
import { keep, type Optimizer, type Tensor as TfTensor, tensor as tfTensor } from "@tensorflow/tfjs-core";
import type { StateByName } from "./loaded-state";

/** A name and a tensor, as TF.js has them in lists. */
export type NamedTensor = Awaited<ReturnType<Optimizer["getWeights"]>>[number];

/** How TF.js calls the count of steps, which comes first. */
const ITERATIONS = "iter";

function numberTensor(value: number): TfTensor {
  return value === (value | 0)
    ? tfTensor(Int32Array.of(value), [], "int32")
    : tfTensor(new Int32Array(Float64Array.of(value).buffer), [2], "int32");
}

function numberIn(values: Int32Array): number {
  return values.length === 1 ? values[0]! : new Float64Array(values.slice().buffer)[0]!;
}

function stateTensor(state: Tensor): TfTensor {
  const values = tidy(() => state.to("f32").dataSync<Float32Array>());
  return tfTensor(values, [...state.shape], "float32");
}

/** The tensors outlive every tidy and scope: whoever asked disposes them. */
export function toNamedTensors(iterations: number, state: StateByName): NamedTensor[] {
  const states = Object.entries(state).flatMap(([variable, entry]) =>
    Object.entries(entry).map(([key, value]) => ({
      name: `${variable}/${key}`,
      tensor: keep(value instanceof Tensor ? stateTensor(value) : numberTensor(value)),
    })),
  );
  return [{ name: ITERATIONS, tensor: keep(numberTensor(iterations)) }, ...states];
}

/** The tensors of the state are ours, on js. @throws OptError BAD_STATE */
export async function fromNamedTensors(
  where: string,
  weights: readonly NamedTensor[],
): Promise<{ readonly iterations: number; readonly state: StateByName }> {
  const isState = ({ name, tensor }: NamedTensor) => /.\/./.test(name) && /^(float32|int32)$/.test(tensor?.dtype);
  const [first, ...states] = Array.isArray(weights) ? (weights as NamedTensor[]) : [];
  check(
    first?.name === ITERATIONS && states.every(isState),
    "BAD_STATE",
    where,
    () => `weights must be named ${ITERATIONS} and <variable>/<state>, got ${show(weights)}.`,
    "Pass what getWeights() of a TfOptimizer returned.",
  );
  const [iterations, ...values] = await Promise.all([first, ...states].map(({ tensor }) => tensor.data()));
  const state: Record<string, Record<string, number | Tensor>> = {};
  states.forEach(({ name, tensor: { dtype, shape } }, i) => {
    const [, variable, key] = /^(.*)\/(.*)$/s.exec(name) as unknown as [string, string, string];
    const value = values[i]!;
    state[variable] ??= {};
    state[variable][key] =
      dtype === "int32" ? numberIn(value as Int32Array) : tensor(value as Float32Array, { shape, device: "js" });
  });
  return { iterations: iterations![0]!, state: state as Record<string, ParameterStateDict> };
}
