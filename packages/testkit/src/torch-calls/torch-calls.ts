/** Single calls judged by PyTorch: dtypes, shapes, values and gradients, on any numbers. OPT_TORCH_PYTHON names a Python that has it. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type DType, grad, OptError, type Shape, type Tensor, tensor, tidy } from "@opt/core";
import { expect } from "vitest";
import type { Tolerance } from "../numbers/compare";

export interface CallInput {
  readonly values: ArrayLike<number>;
  readonly shape: Shape;
  readonly dtype: DType;
  readonly requiresGrad?: boolean;
}

/** A call of ours and the same in Python, where the inputs are a, b, c, ...; statements are separated by ";;", the last is the result. */
export interface TorchCall {
  readonly name: string;
  readonly inputs: readonly CallInput[];
  readonly code: string;
  readonly run: (...inputs: Tensor[]) => Tensor | readonly Tensor[];
  readonly tolerance?: Tolerance;
}

interface Told {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly numbers: string;
}

export type TorchAnswer =
  | { readonly outputs: readonly Told[]; readonly gradients: readonly (Told | null)[] }
  | { readonly refused: string };

const script = fileURLToPath(new URL("calls.py", import.meta.url));

/** What PyTorch gives for each call, from one process. */
export function askTorch(python: string, calls: readonly TorchCall[]): TorchAnswer[] {
  const input = calls.map(({ inputs, code }) => ({
    code,
    inputs: inputs.map(({ values, shape, dtype, requiresGrad = false }) => {
      const bytes = new Uint8Array(Float64Array.from(values).buffer);
      return { numbers: Buffer.from(bytes).toString("base64"), shape, dtype, requiresGrad };
    }),
  }));
  const output = execFileSync(python, [script], { input: JSON.stringify(input), encoding: "utf8", maxBuffer: 2 ** 30 });
  return JSON.parse(output) as TorchAnswer[];
}

const numbersOf = ({ numbers }: Told) => new Float64Array(new Uint8Array(Buffer.from(numbers, "base64")).buffer);

/** Rounding of the dtype in which the results are given, some of it from sums. */
const ROUNDING: Partial<Record<DType, number>> = { f64: 1e-10, f32: 1e-5, f16: 2e-3, bf16: 1.6e-2 };

/** Ours is what PyTorch gave; a call that PyTorch refuses is refused by us, with an OptError. */
export function expectAnswer({ inputs, run, tolerance }: TorchCall, answer: TorchAnswer): void {
  tidy(() => {
    const leaves = inputs.map(({ values, shape, dtype, requiresGrad = false }) => {
      const leaf = tensor(Float64Array.from(values), { shape }).to(dtype).detach();
      leaf.requiresGrad = requiresGrad;
      return leaf;
    });
    if ("refused" in answer) {
      expect(() => run(...leaves), answer.refused).toThrow(OptError);
      return;
    }
    const outputs = [run(...leaves)].flat() as Tensor[];
    const allowed = (dtype: DType) => tolerance ?? { absolute: ROUNDING[dtype] ?? 0, relative: ROUNDING[dtype] ?? 0 };
    const compare = (ours: Tensor, theirs: Told, what: string) => {
      expect([what, ours.dtype, ours.shape]).toEqual([what, theirs.dtype, theirs.shape]);
      expect(Float64Array.from(ours.dataSync())).toAgreeWith(numbersOf(theirs), allowed(theirs.dtype));
    };
    expect(outputs.length).toBe(answer.outputs.length);
    for (const [i, output] of outputs.entries()) compare(output, answer.outputs[i]!, `output ${i}`);
    const losses = outputs.filter(({ requiresGrad }) => requiresGrad).map(weighted);
    const wanted = leaves.filter((leaf) => leaf.requiresGrad);
    if (losses.length === 0) return;
    const loss = losses.reduce((a, b) => a.add(b));
    const gradients = grad(loss, wanted, { allowUnused: true });
    const theirs = answer.gradients.filter((_, i) => leaves[i]!.requiresGrad);
    for (const [i, gradient] of gradients.entries()) {
      if (gradient !== null && theirs[i]) compare(gradient, theirs[i], `gradient ${i}`);
      else expect([i, gradient === null]).toEqual([i, theirs[i] === null]);
    }
  });
}

/** Every element with a weight of its own. */
function weighted(output: Tensor): Tensor {
  const weights = Float64Array.from({ length: output.size }, (_, i) => Math.sin(i + 1));
  return output
    .to("f64")
    .mul(tensor(weights, { shape: output.shape }))
    .sum();
}
