/** Programs as instructions of the block interpreter (native/cpu/src/kernels/rules/program.cc). */
import type { Op, Program } from "@opt/core/backend";
import { OP_NUMBER } from "./numbers";

/** Stands in the op's place where a constant is set. */
const SET_CONSTANT = -1;
const INSTRUCTION = 5;

/**
 * Encodes a program. `targets[k]` is the buffer that output k goes to. A map's result goes straight to its output,
 * a rule's through registers, because all its reads see the old values.
 */
export function encodeProgram(program: Program, bufferCount: number, targets: readonly number[]): Float64Array {
  const { nodes, outputs } = program;
  const direct = outputs.length === 1 && nodes[outputs[0]!.node]!.args.length > 0 && !nodes[outputs[0]!.node]!.uniform;
  const uniformNodes = nodes.flatMap((node, n) => (node.uniform && node.op !== "scalar" ? [n] : []));
  const place: number[] = [];
  nodes.forEach((node, n) => {
    if (node.op === "buffer") place[n] = node.value;
    if (node.op === "scalar") place[n] = bufferCount + node.value;
  });
  const firstUniform = bufferCount + program.scalars.length;
  uniformNodes.forEach((n, k) => {
    place[n] = firstUniform + k;
  });
  const firstRegister = firstUniform + uniformNodes.length;
  const registers = assignRegisters(program, direct, firstRegister, place);
  if (direct) place[outputs[0]!.node] = targets[0]!;

  const instruction = (n: number): number[] => {
    const { op, args, value } = nodes[n]!;
    if (op === "constant") return [SET_CONSTANT, place[n]!, value, 0, 0];
    const operand = (i: number) => place[args[i] ?? args[0]!]!;
    return [OP_NUMBER[op as Op], place[n]!, operand(0), operand(1), operand(2)];
  };
  const uniformCode = uniformNodes.flatMap(instruction);
  const elementCode = nodes.flatMap(({ args, uniform }, n) => (args.length > 0 && !uniform ? instruction(n) : []));
  // A result that is a buffer's old value is set aside before another result overwrites it: max(x, x) has the bits of x.
  let registerCount = registers;
  const setAside = (buffer: number) => {
    const register = firstRegister + registerCount++;
    elementCode.push(OP_NUMBER.max, register, buffer, buffer, buffer);
    return register;
  };
  const stored = ({ node }: { node: number }) => (nodes[node]!.op === "buffer" ? setAside(place[node]!) : place[node]!);
  const stores = direct ? [] : outputs.flatMap((output, k) => [targets[k]!, stored(output)]);
  const counts = [uniformCode.length / INSTRUCTION, elementCode.length / INSTRUCTION, stores.length / 2];
  const header = [bufferCount, program.scalars.length + uniformNodes.length, registerCount, ...counts];
  return Float64Array.from([...header, ...uniformCode, ...elementCode, ...stores]);
}

/** Gives each computed value a register, reused after its last use; returns how many there are. */
function assignRegisters({ nodes, outputs }: Program, direct: boolean, first: number, place: number[]): number {
  const lastUse = nodes.map((_, n) => n);
  nodes.forEach(({ args }, n) => {
    for (const arg of args) lastUse[arg] = n;
  });
  if (!direct) for (const { node } of outputs) lastUse[node] = nodes.length;
  const free: number[] = [];
  let count = 0;
  const straight = direct ? outputs[0]!.node : -1;
  nodes.forEach(({ op, args, uniform }, n) => {
    if (op === "buffer" || uniform) return;
    if (n !== straight) place[n] = free.pop() ?? first + count++;
    for (const value of new Set([...args, n])) {
      const computed = nodes[value]!.args.length > 0 && !nodes[value]!.uniform;
      if (computed && value !== straight && lastUse[value] === n) free.push(place[value]!);
    }
  });
  return count;
}
