/** A model's layers as a table: what they give, and what they cost. */
import { check, noGrad, show, Tensor, tidy } from "@opt/core";
import type { Module } from "@opt/nn";

/** What the calls of a layer gave. */
interface Calls {
  shape: readonly number[];
  bytes: number;
  multiplyAdds: number;
}

const COLUMNS = ["Layer", "Output shape", "Parameters", "Bytes", "Multiply-adds"] as const;

/**
 * A table of the layers, in the columns of torchinfo: output shape, parameters, bytes of parameters, multiply-adds. The model runs once.
 *
 * Multiply-adds are counted as torchinfo counts them, for layers without children: convolutions (parameters times positions), recurrent
 * layers (times samples and steps), others (times samples; a `Linear` over a sequence counts one position). Parameters that layers share
 * count once. The forward/backward size is twice the outputs of layers with parameters.
 *
 * @param input what `forward` takes: a tensor, or a list of all its arguments
 * @throws OptError BAD_ARGUMENT unless it is a module; what the model throws
 * @example
 * console.log(summary(new Sequential(new Linear(4, 8), new ReLU()), zeros([1, 4])));
 */
export function summary(model: Module, input: Tensor | readonly unknown[]): string {
  const isModule = typeof model?.modules === "function";
  check(isModule, "BAD_ARGUMENT", "summary", () => `needs a module, got ${show(model)}.`);
  const inputs = Array.isArray(input) ? input : [input];
  const calls = watch(model, inputs);
  const seen = new Set<Tensor>();
  const rows: string[][] = [];
  const totals = { parameters: 0, trainable: 0, bytes: 0, multiplyAdds: 0, outputs: 0 };
  const visit = (name: string, module: Module, depth: number) => {
    const children = [...module.namedChildren()];
    const own = new Set(module.namedTensors().map(([, tensor]) => tensor));
    for (const [, child] of children) for (const [, tensor] of child.namedTensors()) own.delete(tensor);
    for (const tensor of own) if (!isParameter(module, tensor)) own.delete(tensor);
    const fresh = [...own].filter((tensor) => !seen.has(tensor));
    for (const tensor of fresh) {
      seen.add(tensor);
      totals.parameters += tensor.size;
      if (tensor.requiresGrad) totals.trainable += tensor.size;
      totals.bytes += bytesOf(tensor);
    }
    const call = calls.get(module);
    if (children.length === 0 && call) {
      totals.multiplyAdds += call.multiplyAdds;
      if (own.size > 0) totals.outputs += call.bytes;
    }
    const count = fresh.reduce((sum, { size }) => sum + size, 0);
    const bytes = fresh.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
    const title = `${"  ".repeat(depth)}${name === "" ? "" : `${name}: `}${module.constructor.name}`;
    const shape = call ? `[${call.shape.join(", ")}]` : "not called";
    const work = children.length === 0 && call ? call.multiplyAdds : 0;
    rows.push([title, shape, ...[count, bytes, work].map((value) => (value === 0 ? "" : number(value)))]);
    for (const [key, child] of children) visit(key, child, depth + 1);
  };
  visit("", model, 0);
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(2);
  const inputBytes = inputs.reduce((sum: number, each) => sum + (each instanceof Tensor ? bytesOf(each) : 0), 0);
  const both = 2 * totals.outputs;
  return [
    ...table(rows),
    `Parameters: ${number(totals.parameters)}`,
    `Trainable: ${number(totals.trainable)}`,
    `Multiply-adds: ${number(totals.multiplyAdds)}`,
    `Input: ${megabytes(inputBytes)} MB`,
    `Forward and backward: ${megabytes(both)} MB`,
    `Parameters: ${megabytes(totals.bytes)} MB`,
    `Together: ${megabytes(inputBytes + both + totals.bytes)} MB`,
  ].join("\n");
}

const number = (value: number) => value.toLocaleString("en");
const bytesOf = ({ size, dtype }: Tensor) => size * (BYTES[dtype] ?? 4);
const BYTES: Readonly<Record<string, number>> = { f64: 8, c64: 8, f16: 2, bf16: 2, u8: 1, bool: 1 };

/** Frozen parameters are no buffers, though they require no gradient either: buffers are named so. */
function isParameter(module: Module, tensor: Tensor): boolean {
  if (tensor.requiresGrad) return true;
  const name = module.namedTensors().find(([, each]) => each === tensor)?.[0] ?? "";
  return !/running_|num_batches/.test(name);
}

/** Runs the model in evaluation mode, and notes what each layer gives. */
function watch(model: Module, inputs: readonly unknown[]): Map<Module, Calls> {
  const calls = new Map<Module, Calls>();
  const modules = model.modules();
  const training = modules.filter((each) => each.training);
  const removers = modules.map((each) =>
    each.onForward((module, _inputs, output) => {
      const first = firstTensor(output);
      if (first === undefined) return;
      const before = calls.get(module)?.multiplyAdds ?? 0;
      const multiplyAdds = before + workOf(module, first.shape);
      calls.set(module, { shape: first.shape, bytes: bytesOf(first), multiplyAdds });
    }),
  );
  model.eval();
  try {
    noGrad(() => tidy(() => void (model.forward as (...inputs: readonly unknown[]) => unknown)(...inputs)));
  } finally {
    for (const remove of removers) remove();
    for (const each of training) each.training = true;
  }
  return calls;
}

/** Multiply-adds of a layer's own parameters in one call. */
function workOf(module: Module, output: readonly number[]): number {
  const product = (extents: readonly number[]) => extents.reduce((a, b) => a * b, 1);
  const named = module.namedTensors().filter(([, tensor]) => isParameter(module, tensor));
  const isRecurrent = named.some(([name]) => /^weight_hh_l/.test(name));
  const isConvolution = named.some(([name, { shape }]) => name === "weight" && shape.length > 2);
  const positions = isConvolution
    ? product([...output.slice(0, 1), ...output.slice(2)])
    : product(output.slice(0, isRecurrent ? 2 : 1));
  return positions * named.reduce((sum, [, { size }]) => sum + size, 0);
}

function firstTensor(output: unknown): Tensor | undefined {
  if (output instanceof Tensor) return output;
  return Array.isArray(output) ? output.map(firstTensor).find((each) => each !== undefined) : undefined;
}

function table(rows: readonly (readonly string[])[]): string[] {
  const all = [COLUMNS, ...rows];
  const widths = COLUMNS.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  const line = "-".repeat(widths.reduce((sum, width) => sum + width + 2, -2));
  const write = (row: readonly string[]) =>
    row
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd();
  return [write(COLUMNS), line, ...rows.map(write), line];
}
