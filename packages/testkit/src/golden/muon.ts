/** `torch-muon.json`: Muon in float32, 25 steps, by PyTorch 2.13. */
import { readGoldenJson } from "./files";
import type { OptimizerOptions } from "./optimizer";
import { floats } from "./torch";

export interface MuonGolden {
  readonly shape: readonly [number, number];
  readonly options: OptimizerOptions;
  readonly start: Float32Array;
  readonly gradients: readonly Float32Array[];
  readonly param: Float32Array;
  readonly momentum: Float32Array;
}

type Stored = { readonly [Key in "start" | "param" | "momentum_buffer"]: string } & {
  readonly gradients: readonly string[];
} & Pick<MuonGolden, "shape" | "options">;

export function muonGoldens(): MuonGolden[] {
  const { cases } = readGoldenJson<{ cases: readonly Stored[] }>("torch-muon.json");
  return cases.map(({ shape, options, start, gradients, param, momentum_buffer }) => ({
    shape,
    options,
    start: floats(start),
    gradients: gradients.map(floats),
    param: floats(param),
    momentum: floats(momentum_buffer),
  }));
}
