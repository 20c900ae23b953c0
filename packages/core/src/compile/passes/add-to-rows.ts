/** A sum of another matrix and a row program's first result becomes part of the program, as gradients that flow around a layer. */
import type { RowProgram } from "../../rule/rows/row-program";
import { isDense } from "../../values/strides";
import type { Pass } from "./carried-passes";
import { isSameSlice } from "./layout";

/** @param sum the program with one more input, which is added to its first output */
export function addToRows(program: RowProgram, sum: RowProgram): Pass {
  return (uses, device) => {
    for (let index = 0; index < uses.length; index++) {
      const rows = uses.launch("rows", index);
      if (rows?.kernel.spec.program.hash !== program.hash) continue;
      const [result, ...others] = rows.outputs;
      const [reader, ...more] = uses.readers(result!.memory);
      const add = reader === undefined || more.length > 0 ? undefined : uses.launch("map", reader);
      const isOwn = uses.temporaries.has(result!.memory) && uses.writers(result!.memory).length === 1;
      if (add === undefined || !isOwn || uses.hasHostBetween(index, reader!)) continue;
      const { nodes } = add.kernel.spec.program;
      const isSum = nodes.length === 3 && nodes[2]!.op === "add" && add.inputs.length === 2;
      const [own, other] = add.inputs[0]?.memory === result!.memory ? add.inputs : add.inputs.toReversed();
      const isWhole = add.strides.every((strides) => isDense(add.shape, strides));
      if (!isSum || !isWhole || !isSameSlice(own!, result!) || other!.memory === own!.memory) continue;
      // The sum moves to where the rows are.
      const { memory } = add.output;
      const touched = [...uses.readers(memory), ...uses.writers(memory)];
      const isFree = touched.every((step) => step >= reader!) && memory !== other!.memory;
      const isThere = !uses.isWrittenBetween(other!.memory, index - 1, reader!);
      if (!isFree || !isThere) continue;
      const kernel = device.kernel({ ...rows.kernel.spec, program: sum });
      const launch = { ...rows, kernel, inputs: [...rows.inputs, other!], outputs: [add.output, ...others] };
      uses.replace(index, { kind: "launch", launch, scalarSource: undefined });
      uses.replace(reader!, null);
    }
  };
}
