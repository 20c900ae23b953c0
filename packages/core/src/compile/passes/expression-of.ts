import { Expression } from "../../rule/expression";
import type { Program } from "../../rule/program";

/** The result of a program as an expression of others. */
export function expressionOf(
  { nodes, outputs }: Program,
  buffers: readonly Expression[],
  scalar: (slot: number) => Expression,
): Expression {
  const values: Expression[] = [];
  for (const { op, args, value } of nodes) {
    if (op === "buffer") values.push(buffers[value]!);
    else if (op === "scalar") values.push(scalar(value));
    else {
      const operands = args.map((arg) => values[arg]!);
      values.push(new Expression(op, operands, value));
    }
  }
  return values[outputs[0]!.node]!;
}
