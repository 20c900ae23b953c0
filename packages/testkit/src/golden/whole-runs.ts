/**
 * Whole runs of packages' optimizers: `testing/optax.json` by optax 0.2.8, written by `goldens/optax_runs.py`, and `testing/paper.json` by
 * a plain float64 program of their paper's formulas, which lies beside it.
 */
import { parameter, tensor } from "@opt/core";
import { expect, it } from "vitest";
import { readPackageGoldens } from "./files";
import type { OptimizerClass, OptimizerLike, OptimizerOptions } from "./optimizer";

interface WholeRuns {
  /** Of the parameters, which step together. */
  readonly shapes: readonly (readonly number[])[];
  readonly runs: readonly {
    readonly optimizer: string;
    readonly options: OptimizerOptions;
    readonly dtype: "float32" | "float64";
    readonly steps: number;
    /** Sophia's estimates come after steps 1, 1 + this, ... */
    readonly estimatedEvery?: number;
    /** After the last step: base64, little-endian. */
    readonly params: readonly string[];
  }[];
}

/** A parameter's first numbers (step 0) and its gradients, exact in float32. */
function runNumbers(size: number, tensor: number, step: number): number[] {
  return Array.from({ length: size }, (_, i) => {
    if (step === 0) return (((i * 37 + tensor * 11) % 64) - 31) / 16;
    return (((step * step * 7 + i * 13 * step + tensor * 5 + i * i) % 101) - 50) / 32;
  });
}

/**
 * Registers a test for each run that packages store of these classes: float64 within 1e-10, float32 within 1e-5. optax's square roots
 * and powers are rounded otherwise.
 */
export function wholeRunsSuite(classes: Readonly<Record<string, OptimizerClass>>): void {
  const rows = (["optax", "paper"] as const)
    .flatMap((by) => readPackageGoldens<WholeRuns>(by))
    .flatMap(({ shapes, runs }) =>
      runs.filter(({ optimizer }) => optimizer in classes).map((run) => ({ shapes, ...run })),
    );
  it.each(rows)("a whole run of $steps steps, $optimizer $options in $dtype", (row) => {
    const { shapes, optimizer, options, dtype, steps, estimatedEvery, params } = row;
    const own = dtype === "float64" ? "f64" : "f32";
    const numbersAt = (k: number, step: number) =>
      tensor(runNumbers(sizeOf(shapes[k]!), k, step), { dtype: own }).reshape([...shapes[k]!]);
    const weights = shapes.map((_, k) => parameter(numbersAt(k, 0)));
    const trained = new classes[optimizer]!(weights, options);
    for (let step = 1; step <= steps; step++) {
      for (const [k, weight] of weights.entries()) weight.grad = numbersAt(k, step);
      trained.step();
      if (estimatedEvery === undefined || (step - 1) % estimatedEvery > 0) continue;
      for (const [k, weight] of weights.entries()) weight.grad = numbersAt(k, step + 1000);
      (trained as OptimizerLike & { updateHessian(): void }).updateHessian();
    }
    for (const [k, text] of params.entries()) {
      const bytes = Uint8Array.from(Buffer.from(text, "base64"));
      const expected = own === "f64" ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
      const tolerance = own === "f64" ? 1e-10 : 1e-5;
      expect(weights[k]!.dataSync()).toAgreeWith(expected, { absolute: tolerance, relative: tolerance });
    }
  });
}

const sizeOf = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);
