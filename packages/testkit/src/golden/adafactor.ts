/** `torch-adafactor.json`: Adafactor in float64, 12 steps, by PyTorch 2.13. */
import { readGoldenJson } from "./files";
import type { OptimizerOptions } from "./optimizer";
import { floats } from "./torch";

export interface AdafactorGolden {
  readonly shape: readonly number[];
  readonly options: OptimizerOptions;
  readonly start: Float64Array;
  readonly gradients: readonly Float64Array[];
  /** After the last step: `param`, and the state under PyTorch's names. */
  readonly end: Readonly<Record<string, Float64Array>>;
}

type Stored = {
  readonly start: string;
  readonly gradients: readonly string[];
  readonly end: Readonly<Record<string, string>>;
} & Pick<AdafactorGolden, "shape" | "options">;

const doubles = (base64: string) => new Float64Array(floats(base64).buffer);

export function adafactorGoldens(): AdafactorGolden[] {
  const { cases } = readGoldenJson<{ cases: readonly Stored[] }>("torch-adafactor.json");
  return cases.map(({ shape, options, start, gradients, end }) => ({
    shape,
    options,
    start: doubles(start),
    gradients: gradients.map(doubles),
    end: Object.fromEntries(Object.entries(end).map(([key, text]) => [key, doubles(text)])),
  }));
}
