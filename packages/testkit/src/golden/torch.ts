/** `torch-f32.json`, `torch-optimizers.json` and the packages' own: optimizers in float32, 25 steps, by PyTorch 2.13 and by the exact recipe. */
import { readGoldenJson, readPackageGoldens } from "./files";
import type { OptimizerOptions } from "./optimizer";

/** The state of a run's end: `param` and the buffers under PyTorch's names as arrays, `mu_product` as a number. */
export interface EndState {
  readonly arrays: ReadonlyMap<string, Float32Array>;
  readonly numbers: ReadonlyMap<string, number>;
}

export interface TorchCase {
  readonly name: string;
  readonly optimizer: string;
  readonly options: OptimizerOptions;
  readonly param0: Float32Array;
  /** One for each step; null where the parameter had none. */
  readonly gradients: readonly (Float32Array | null)[];
  /** What PyTorch computed. */
  readonly torch: EndState;
  /** The same recipe with a correctly rounded square root: what exact devices give, bit for bit. */
  readonly exact: EndState;
}

interface StoredCase {
  readonly optimizer: string;
  readonly options: OptimizerOptions;
  readonly size: number;
  readonly noneAt: readonly number[];
  readonly param0: string;
  readonly grads: readonly string[];
  readonly torch: Readonly<Record<string, string | number>>;
  readonly exact: Readonly<Record<string, string | number>>;
}

export function torchGoldens(optimizer?: string): TorchCase[] {
  const { cases } = readGoldenJson<{ cases: readonly StoredCase[] }>("torch-f32.json");
  type Stored = { readonly float32: readonly StoredCase[] };
  const stored = [readGoldenJson<Stored>("torch-optimizers.json"), ...readPackageGoldens<Stored>("torch")];
  return [...cases, ...stored.flatMap(({ float32 }) => float32)]
    .map((stored, i) => ({
      name: `${i}: ${stored.optimizer} ${describe(stored.options)}, ${stored.size} elements`,
      optimizer: stored.optimizer,
      options: stored.options,
      param0: floats(stored.param0),
      gradients: stored.grads.map((text, step) => (stored.noneAt.includes(step) ? null : floats(text))),
      torch: endState(stored.torch),
      exact: endState(stored.exact),
    }))
    .filter((each) => optimizer === undefined || each.optimizer === optimizer);
}

function endState(stored: Readonly<Record<string, string | number>>): EndState {
  const arrays = new Map<string, Float32Array>();
  const numbers = new Map<string, number>();
  for (const [key, value] of Object.entries(stored)) {
    if (typeof value === "string") arrays.set(key, floats(value));
    else numbers.set(key, value);
  }
  return { arrays, numbers };
}

/** Base64 of little-endian float32. */
export function floats(base64: string): Float32Array {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** Options that are not off, for a test's name. */
function describe(options: OptimizerOptions): string {
  const shown = Object.entries(options).filter(([, value]) => value !== false && value !== 0);
  return shown.map(([key, value]) => `${key} ${value}`).join(", ");
}
