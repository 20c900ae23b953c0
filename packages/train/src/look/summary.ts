/** A model's layers as a table: what they give, and what they cost. */
import { check, noGrad, show, Tensor, tidy } from "@opt/core";
import type { Module } from "@opt/nn";
import { evaluating } from "../modes";

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
 * count once. Of divided layers, parameters and their bytes are those of all ranks. The forward/backward size is twice the outputs of layers with parameters.
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
  const rows: Row[] = [];
  const visit = (name: string, module: Module, depth: number) => {
    const children = [...module.namedChildren()];
    const inner = new Set(children.flatMap(([, child]) => child.namedTensors().map(([, tensor]) => tensor)));
    const own = module.parameters().filter((tensor) => !inner.has(tensor));
    const fresh = own.filter((tensor) => !seen.has(tensor));
    for (const tensor of fresh) seen.add(tensor);
    const call = calls.get(module);
    const leaf = children.length === 0 ? call : undefined;
    rows.push({
      title: `${"  ".repeat(depth)}${name === "" ? "" : `${name}: `}${module.constructor.name}`,
      shape: call ? `[${call.shape.join(", ")}]` : "not called",
      parameters: total(fresh, wholeSize),
      trainable: total(fresh, (tensor) => (tensor.requiresGrad ? wholeSize(tensor) : 0)),
      bytes: total(fresh, (tensor) => (bytesOf(tensor) / (tensor.size || 1)) * wholeSize(tensor)),
      work: leaf?.multiplyAdds ?? 0,
      outputs: own.length > 0 ? (leaf?.bytes ?? 0) : 0,
    });
    for (const [key, child] of children) visit(key, child, depth + 1);
  };
  visit("", model, 0);
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(2)} MB`;
  const given = total(inputs, (each) => (each instanceof Tensor ? bytesOf(each) : 0));
  const both = 2 * total(rows, ({ outputs }) => outputs);
  const bytes = total(rows, (row) => row.bytes);
  return [
    ...table(rows),
    `Parameters: ${number(total(rows, ({ parameters }) => parameters))}`,
    `Trainable: ${number(total(rows, ({ trainable }) => trainable))}`,
    `Multiply-adds: ${number(total(rows, ({ work }) => work))}`,
    `Input: ${megabytes(given)}`,
    `Forward and backward: ${megabytes(both)}`,
    `Parameters: ${megabytes(bytes)}`,
    `Together: ${megabytes(given + both + bytes)}`,
  ].join("\n");
}

/** Elements of the tensor, on all ranks that have parts of it. */
const wholeSize = ({ size, placement }: Tensor) => placement?.shape.reduce((a, b) => a * b, 1) ?? size;

/** A layer with its own parameters, those of its children left out. */
interface Row {
  readonly title: string;
  readonly shape: string;
  readonly parameters: number;
  readonly trainable: number;
  readonly bytes: number;
  readonly work: number;
  /** Bytes of the output, of a layer that has parameters. */
  readonly outputs: number;
}

const total = <Each>(list: readonly Each[], of: (each: Each) => number) =>
  list.reduce((sum, each) => sum + of(each), 0);
const number = (value: number) => value.toLocaleString("en");
const bytesOf = ({ size, dtype }: Tensor) => size * (BYTES[dtype] ?? 4);
const BYTES: Readonly<Record<string, number>> = { f64: 8, c64: 8, f16: 2, bf16: 2, u8: 1, bool: 1 };

/** Runs the model in evaluation mode, and notes what each layer gives. */
function watch(model: Module, inputs: readonly unknown[]): Map<Module, Calls> {
  const calls = new Map<Module, Calls>();
  const modules = model.modules();
  const removers = modules.map((each) =>
    each.onForward((module, _inputs, output) => {
      const first = firstTensor(output);
      if (first === undefined) return;
      const before = calls.get(module)?.multiplyAdds ?? 0;
      const multiplyAdds = before + workOf(module, first.shape);
      calls.set(module, { shape: first.shape, bytes: bytesOf(first), multiplyAdds });
    }),
  );
  const run = () => void (model.forward as (...inputs: readonly unknown[]) => unknown)(...inputs);
  try {
    evaluating(model, () => noGrad(() => tidy(run)));
  } finally {
    for (const remove of removers) remove();
  }
  return calls;
}

/** Multiply-adds of a layer's own parameters in one call. */
function workOf(module: Module, output: readonly number[]): number {
  const product = (extents: readonly number[]) => extents.reduce((a, b) => a * b, 1);
  const named = module.namedParameters();
  const isRecurrent = named.some(([name]) => /^weight_hh_l/.test(name));
  const isConvolution = named.some(([name, { shape }]) => name === "weight" && shape.length > 2);
  const positions = isConvolution
    ? product([...output.slice(0, 1), ...output.slice(2)])
    : product(output.slice(0, isRecurrent ? 2 : 1));
  return positions * total(named, ([, { size }]) => size);
}

function firstTensor(output: unknown): Tensor | undefined {
  if (output instanceof Tensor) return output;
  return Array.isArray(output) ? output.map(firstTensor).find((each) => each !== undefined) : undefined;
}

function table(rows: readonly Row[]): string[] {
  const shown = (value: number) => (value === 0 ? "" : number(value));
  const cells = rows.map(({ title, shape, parameters, bytes, work }) => [
    title,
    shape,
    ...[parameters, bytes, work].map(shown),
  ]);
  const all = [COLUMNS, ...cells];
  const widths = COLUMNS.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  const padded = (cell: string, column: number) =>
    column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
  const [head, ...body] = all.map((row) => row.map(padded).join("  ").trimEnd());
  const line = "-".repeat(total(widths, (width) => width + 2) - 2);
  return [head!, line, ...body, line];
}
