/** Two groups, of which the second's parameter has a gradient only every other step. */
import { type Device, parameter, tensor } from "@opt/core";
import type { OptimizerClass } from "./optimizer";
import { optionsFrom, semanticsGolden } from "./semantics";

type Step = readonly [a: readonly number[], b: readonly number[]];

export async function runGroups(Optimizer: OptimizerClass, name: string, device?: Device) {
  const { config, inputs, expected } = semanticsGolden(`torch_${name}_groups_none_grad`);
  const [first, second] = (config.groups as Record<string, unknown>[]).map(optionsFrom);
  const place = { dtype: "f64", device } as const;
  const a = parameter(inputs.a as number[], { ...place, name: "a" });
  const b = parameter(inputs.b as number[], { ...place, name: "b" });
  const groups = [
    { params: [a], ...first },
    { params: [b], ...second },
  ];
  const optimizer = new Optimizer(groups, optionsFrom(config));
  const trace: { a: ArrayLike<number>; b: ArrayLike<number> }[] = [];
  for (const gradient of inputs.grad_b as (number[] | null)[]) {
    a.grad = tensor(inputs.grad_a as number[], place);
    b.grad = gradient === null ? null : tensor(gradient, place);
    optimizer.step();
    trace.push({ a: await a.data(), b: await b.data() });
  }
  const { state } = optimizer.stateDict();
  return {
    trace,
    steps: [state.a?.step, state.b?.step],
    expected: { trace: expected.trace_a_b as Step[], steps: expected.steps as number[] },
  };
}
