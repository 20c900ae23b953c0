/** The outputs of a row program by what makes them: a kernel over rows, and one over columns. */
import type { RowProgram, RowResult } from "./row-program";

/** An output that a row has of its own: a matrix, or a number. */
export interface ResultOfRow extends RowResult {
  readonly slot: number;
}

/** An output of columns: `term` is the node that is added up. */
export interface ResultOfColumns extends ResultOfRow {
  readonly term: number;
}

/** What a kernel over rows writes. */
export function resultsOfRows({ outputs }: RowProgram): ResultOfRow[] {
  return outputs.flatMap((output, slot) => (output.kind === "columns" ? [] : [{ ...output, slot }]));
}

/** What a kernel over columns writes. */
export function resultsOfColumns({ nodes, outputs }: RowProgram): ResultOfColumns[] {
  return outputs.flatMap((output, slot) =>
    output.kind === "columns" ? [{ ...output, slot, term: nodes[output.node]!.args[0]! }] : [],
  );
}

/** The nodes that some outputs need: their own, and those at the label. */
export function rootsOf(results: readonly RowResult[]): number[] {
  return results.flatMap(({ node, atLabel }) => (atLabel === undefined ? [node] : [node, atLabel]));
}
