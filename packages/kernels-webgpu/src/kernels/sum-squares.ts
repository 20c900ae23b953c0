/** Sums of squares of a list of tensors: blocks first, then the blocks of each tensor. */
import type { Launch, Spec } from "@opt/core/backend";
import type { Execution, KernelSource, Target } from "../kernel";
import { sharedValues, sumOfLanes } from "../shader/group";
import { LANES, type Shader } from "../shader/shader";
import { conversionsOf, readStored } from "./convert";
import { blocksOf, dispatchPart, findTensor, LIST_PARAMS, overBlock, partsOf } from "./tensor-list";

/** Elements of a workgroup. */
const BLOCK = 4096;

interface PreparedSumSquares {
  readonly blocks: Shader;
  readonly totals: Shader;
}

export const sumSquares: KernelSource<"sumSquares", PreparedSumSquares> = {
  prepare({ stored = "f32", nonFinite }: Spec<"sumSquares">, { subgroups }: Target) {
    const declarations = `${sharedValues(LANES)}\n${sumOfLanes(LANES, subgroups)}`;
    // By its bits: devices may assume that neither infinities nor NaN occur.
    const term = nonFinite ? "select(0f, 1f, (bitcast<u32>(value) & 0x7f800000u) == 0x7f800000u)" : "value * value";
    const read = (buffer: string) => readStored(buffer, "at0 + i", stored);
    return {
      blocks: {
        name: "sum of squares",
        slices: { input: stored === "f32" ? "words" : "halves", table: "u32", sums: "f32" },
        params: LIST_PARAMS,
        subgroups,
        declarations: [declarations, ...conversionsOf(read(""))].join("\n"),
        body: ({ input }) =>
          [
            findTensor(1, BLOCK),
            "var own = 0f;",
            overBlock([`let value = ${read(input!)};`, `own += ${term};`]),
            "let sum = sum_of_lanes(own, lane);",
            "if (lane == 0u) { put_sums(table(entry + 2u) + group - table(entry), sum); }",
          ].join("\n"),
      },
      totals: {
        name: "sum of squares, totals",
        slices: { sums: "f32", ends: "u32", output: "f32" },
        params: { tensors: "u32" },
        subgroups,
        declarations,
        body: () =>
          [
            "if (group >= params.tensors) { return; }",
            "var own = 0f;",
            `for (var i = ends(group) + lane; i < ends(group + 1u); i += ${LANES}u) { own += sums(i); }`,
            "let sum = sum_of_lanes(own, lane);",
            "if (lane == 0u) { put_output(group, sum); }",
          ].join("\n"),
      },
    };
  },

  launch({ kernel, inputs, output }: Launch<"sumSquares">, prepared: PreparedSumSquares, execution: Execution) {
    if (inputs.length === 0) return;
    let blocks = 0;
    const ends = Uint32Array.of(
      0,
      ...inputs.map(({ length }) => {
        blocks += blocksOf(length, BLOCK);
        return blocks;
      }),
    );
    const sums = execution.scratch(blocks);
    const listed = inputs.map((slice, t) => ({ slices: [slice], extra: ends[t]! }));
    for (const part of partsOf(listed, BLOCK, execution.largestBinding, [
      (kernel.spec.stored ?? "f32") === "f32" ? 4 : 2,
    ])) {
      dispatchPart(execution, prepared.blocks, prepared.blocks, part, BLOCK, {}, [sums]);
    }
    const table = execution.table(prepared.totals, ends);
    execution.dispatch(prepared.totals, [sums, table, output], { tensors: inputs.length }, inputs.length);
  },
};
