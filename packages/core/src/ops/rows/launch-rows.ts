/** Launches of row programs by the names of their inputs and outputs. */
import type { Slice } from "../../backend/memory";
import type { Rows } from "../../rule/rows/row-program";
import type { Tensor } from "../../tensor/tensor";
import type { ComputeDType } from "../../values/dtype";

export interface RowsLaunch<Input extends string, Scalar extends string, Output extends string> {
  readonly inputs: Readonly<Record<Input, Tensor>>;
  /** Receive the results. */
  readonly outputs: Readonly<Record<Output, Tensor>>;
  readonly scalars?: Readonly<Record<Scalar, number>>;
  readonly labels?: Tensor;
  readonly ignoreIndex?: number;
  readonly rows: number;
  readonly length: number;
}

/** Computes the outputs of a program, which have its dtype. */
export function launchRows<Input extends string, Scalar extends string, Output extends string>(
  program: Rows<Input, Scalar, Output>,
  { inputs, outputs, scalars, labels, ignoreIndex = -100, rows, length }: RowsLaunch<Input, Scalar, Output>,
): void {
  const slices = (list: RowNames, of: Readonly<Record<string, Tensor>>): Slice[] =>
    list.map(({ name }) => of[name]!.memorySlice());
  const { device, dtype } = (Object.values(outputs) as Tensor[])[0]!;
  device.launch({
    kind: "rows",
    kernel: device.kernel({ kind: "rows", program, dtype: dtype as ComputeDType }),
    inputs: slices(program.inputs, inputs),
    outputs: slices(program.outputs, outputs),
    scalars: program.scalars.map((name) => scalars![name as Scalar]),
    ...(labels && { labels: labels.memorySlice() }),
    rows,
    length,
    ignoreIndex,
  });
}

type RowNames = readonly { readonly name: string }[];
