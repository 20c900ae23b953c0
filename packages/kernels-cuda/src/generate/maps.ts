/** The maps that are compiled ahead: every op by itself and what core fills and scales tensors with. NVRTC compiles the others. */
import {
  ARITY,
  type ComputeDType,
  type Node,
  type Op,
  type Program,
  RULE_OPS,
  TRANSCENDENTAL_OPS,
} from "@opt/core/backend";
import { mapKernelName } from "../kernels";
import { writeMap } from "./write-kernels";

const buffer = (slot: number): Node => ({ op: "buffer", args: [], value: slot, uniform: false });
const scalar: Node = { op: "scalar", args: [], value: 0, uniform: true };
const NAMES = ["a", "b", "c"];

function program(buffers: number, scalars: readonly string[], nodes: readonly Node[]): Program {
  return { buffers: NAMES.slice(0, buffers), scalars, nodes, outputs: [{ slot: 0, node: nodes.length - 1 }] };
}

/** An op on tensors. A condition is made and used at once: a where a < b, else b. */
function single(op: Op): Program {
  if (op === "less" || op === "select") {
    const less: Node = { op: "less", args: [0, 1], value: 0, uniform: false };
    return program(2, [], [buffer(0), buffer(1), less, { op: "select", args: [2, 0, 1], value: 0, uniform: false }]);
  }
  const operands = NAMES.slice(0, ARITY[op]).map((_, slot) => buffer(slot));
  return program(operands.length, [], [...operands, { op, args: operands.map((_, n) => n), value: 0, uniform: false }]);
}

/** a scaled and b scaled, added: scalars and constants beside buffers. */
const scaledSum = program(
  2,
  ["s"],
  [
    buffer(0),
    scalar,
    { op: "mul", args: [0, 1], value: 0, uniform: false },
    buffer(1),
    { op: "constant", args: [], value: -0.1, uniform: true },
    { op: "mul", args: [3, 4], value: 0, uniform: false },
    { op: "add", args: [2, 5], value: 0, uniform: false },
  ],
);

const scale = program(1, ["factor"], [buffer(0), scalar, { op: "mul", args: [0, 1], value: 0, uniform: false }]);
const fill = program(0, ["value"], [scalar]);
const expand = program(1, [], [buffer(0)]);
const square = program(1, [], [buffer(0), { op: "mul", args: [0, 0], value: 0, uniform: false }]);

export const builtMaps: readonly Program[] = [
  ...[...RULE_OPS, ...TRANSCENDENTAL_OPS].filter((op) => op !== "less").map(single),
  ...[scaledSum, scale, fill, expand, square],
];

export function writeMaps(maps: readonly Program[]): string {
  const kernels = maps.flatMap((each) =>
    (["f32", "f64"] as const satisfies readonly ComputeDType[]).flatMap((dtype) => [
      writeMap(each, dtype, mapKernelName({ kind: "map", program: each, dtype })),
      "",
    ]),
  );
  return ["// Written by @opt/kernels-cuda.", '#include "elements.cuh"', "", ...kernels].join("\n");
}
