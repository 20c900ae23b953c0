/** Single calls judged by PyTorch: dtypes, shapes, values and gradients, on any numbers. OPT_TORCH_PYTHON names a Python that has it. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import {
  compile,
  type Device,
  type DType,
  grad,
  keep,
  OptError,
  type Shape,
  type Tensor,
  tensor,
  tidy,
} from "@opt/core";
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
  /** Also compares the gradients of the weighted gradients, or only which of them are there. Default false. */
  readonly second?: boolean | "presence";
}

export interface StoredTensor {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly numbers: string;
}

export type TorchAnswer =
  | {
      readonly outputs: readonly StoredTensor[];
      readonly gradients: readonly (StoredTensor | null)[];
      readonly second?: readonly (StoredTensor | null)[];
    }
  | { readonly rejected: string };

const script = fileURLToPath(new URL("calls.py", import.meta.url));

/** What PyTorch gives for each call, from one process. */
export function askTorch(python: string, calls: readonly TorchCall[]): TorchAnswer[] {
  const input = calls.map(({ inputs, code, second = false }) => ({
    code,
    second: second !== false,
    inputs: inputs.map(({ values, shape, dtype, requiresGrad = false }) => {
      const bytes = new Uint8Array(Float64Array.from(values).buffer);
      return { numbers: Buffer.from(bytes).toString("base64"), shape, dtype, requiresGrad };
    }),
  }));
  const output = execFileSync(python, [script], { input: JSON.stringify(input), encoding: "utf8", maxBuffer: 2 ** 30 });
  return JSON.parse(output) as TorchAnswer[];
}

export const numbersOf = ({ numbers }: StoredTensor): Float64Array =>
  new Float64Array(new Uint8Array(Buffer.from(numbers, "base64")).buffer);

/** Rounding of the dtype in which the results are given, some of it from sums. */
const ROUNDING: Partial<Record<DType, number>> = { f64: 1e-10, f32: 1e-5, f16: 2e-3, bf16: 1.6e-2 };

export const toleranceOf = ({ tolerance }: TorchCall, dtype: DType): Tolerance =>
  tolerance ?? { absolute: ROUNDING[dtype] ?? 0, relative: ROUNDING[dtype] ?? 0 };

/** The inputs of a call as tensors. */
export function leavesOf({ inputs }: TorchCall, device?: Device): Tensor[] {
  return inputs.map(({ values, shape, dtype, requiresGrad = false }) => {
    const leaf = tensor(Float64Array.from(values), { shape }).to(dtype);
    const placed = (device === undefined ? leaf : leaf.to(device)).detach();
    placed.requiresGrad = requiresGrad;
    return placed;
  });
}

/** Where a call is checked, and whether its replay is. */
export interface CheckOptions {
  readonly device?: Device;
  readonly compiled?: boolean;
}

/** Ours is what PyTorch gave; a call that PyTorch rejects is rejected by us, with an OptError. */
export function expectAnswer(call: TorchCall, answer: TorchAnswer, { device, compiled }: CheckOptions = {}): void {
  tidy(() => {
    const leaves = leavesOf(call, device);
    if ("rejected" in answer) {
      expect(() => call.run(...leaves), answer.rejected).toThrow(OptError);
      return;
    }
    const { outputs, gradients, second } = compiled === true ? replayed(call, leaves) : computed(call, leaves);
    const allowed = (dtype: DType) => toleranceOf(call, dtype);
    const compare = (ours: Tensor, theirs: StoredTensor, what: string) => {
      expect([what, ours.dtype, ours.shape]).toEqual([what, theirs.dtype, theirs.shape]);
      expect(Float64Array.from(ours.dataSync()), what).toAgreeWith(numbersOf(theirs), allowed(theirs.dtype));
    };
    expect(outputs.length).toBe(answer.outputs.length);
    for (const [i, output] of outputs.entries()) compare(output, answer.outputs[i]!, `output ${i}`);
    const ofWanted = (told: readonly (StoredTensor | null)[]) => told.filter((_, i) => leaves[i]!.requiresGrad);
    // An optimizer steps by zeros, and skips what has no gradient.
    const compareAll = (ours: readonly (Tensor | null)[], told: readonly (StoredTensor | null)[], what: string) => {
      const byValue = what !== "second gradient" || call.second === true;
      for (const [i, gradient] of ours.entries()) {
        const theirs = ofWanted(told)[i]!;
        if (gradient !== null && theirs !== null && byValue) compare(gradient, theirs, `${what} ${i}`);
        else expect(gradient && "zeros or more", `${what} ${i}`).toBe(theirs && "zeros or more");
      }
    };
    compareAll(gradients, answer.gradients, "gradient");
    // A graph of the gradients changes no gradient.
    if (call.second) {
      const plain = computed({ ...call, second: false }, leaves).gradients;
      compareAll(plain, answer.gradients, "gradient without a graph");
    }
    compareAll(second, answer.second ?? [], "second gradient");
  });
}

export interface ComputedCall {
  readonly outputs: readonly Tensor[];
  readonly gradients: readonly (Tensor | null)[];
  readonly second: readonly (Tensor | null)[];
}

/** Results and gradients, on the way of eager ops. */
export function computed({ run, second = false }: TorchCall, leaves: readonly Tensor[]): ComputedCall {
  const outputs = [run(...leaves)].flat() as Tensor[];
  const wanted = leaves.filter((leaf) => leaf.requiresGrad);
  const gradientsOf = (values: readonly Tensor[], createGraph: boolean) => {
    const losses = values.filter(({ requiresGrad }) => requiresGrad).map(weighted);
    if (losses.length === 0) return wanted.map(() => null);
    const loss = losses.reduce((a, b) => a.add(b));
    return grad(loss, wanted, { allowUnused: true, createGraph });
  };
  const gradients = gradientsOf(outputs, second !== false);
  const found = gradients.filter((gradient) => gradient !== null);
  return { outputs, gradients, second: second ? gradientsOf(found, false) : [] };
}

/** The same by a compiled function, from its second run. */
function replayed(call: TorchCall, leaves: readonly Tensor[]): ComputedCall {
  const compiled = compile(
    (given: readonly Tensor[]) => {
      const { outputs, gradients, second } = computed(call, given);
      const plain = (tensors: readonly (Tensor | null)[]) => tensors.map((tensor) => tensor?.detach() ?? null);
      return { outputs: plain(outputs) as Tensor[], gradients: plain(gradients), second: plain(second) };
    },
    { check: "never" },
  );
  const before = leaves.map((leaf) => leaf.detach().clone());
  // The first call makes what the function finds: layers and weights.
  for (const run of [() => computed(call, leaves), () => compiled(leaves)]) {
    run();
    for (const [i, leaf] of leaves.entries()) leaf.set(before[i]!);
  }
  return compiled(leaves);
}

/** Every element with a weight of its own. */
function weighted(output: Tensor): Tensor {
  return output.to("f64").mul(weightsOf(output)).sum();
}

const weights = new Map<string, Tensor>();

/** Made once: a compiled function takes no data from the host. */
function weightsOf({ size, shape, device }: Tensor): Tensor {
  const key = `${device.name} ${shape}`;
  const made = () => Float64Array.from({ length: size }, (_, i) => Math.sin(i + 1));
  const found = weights.get(key) ?? keep(tensor(made(), { shape, device }));
  weights.set(key, found);
  return found;
}
