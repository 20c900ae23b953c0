/** `optax-optimizers.json`: Lion, AdEMAMix, Lamb and schedule-free AdamW in float32, 25 steps, by optax 0.2.8. */
import { readGoldenJson } from "./files";
import type { OptimizerOptions } from "./optimizer";
import { floats } from "./torch";

export interface OptaxGolden {
  readonly options: OptimizerOptions;
  readonly start: Float32Array;
  readonly gradients: readonly Float32Array[];
  /** After the last step. */
  readonly param: Float32Array;
  /** The weights to evaluate, where they are others. */
  readonly average?: Float32Array;
}

type Stored = {
  readonly [Key in "optimizer" | "start" | "param"]: string;
} & { readonly average?: string; readonly gradients: readonly string[]; readonly options: OptimizerOptions };

export function optaxGoldens(name: "Lion" | "AdEMAMix" | "Lamb" | "ScheduleFreeAdamW"): OptaxGolden[] {
  const { cases } = readGoldenJson<{ cases: readonly Stored[] }>("optax-optimizers.json");
  return cases
    .filter(({ optimizer }) => optimizer === name)
    .map(({ options, start, gradients, param, average }) => ({
      options,
      start: floats(start),
      gradients: gradients.map(floats),
      param: floats(param),
      ...(average !== undefined && { average: floats(average) }),
    }));
}
