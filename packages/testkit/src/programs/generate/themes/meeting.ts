/** Operands whose shapes are near to one another. */
import { interpretOp } from "../../interpret/interpret";
import type { Options, Shape } from "../../program";
import type { Draft } from "../draft";
import { backward, type Theme, weighed } from "./theme";

/** Shapes near to one: an axis more, or fewer, or another extent. */
function nearly(draft: Draft, shape: Shape): Shape {
  const { random } = draft;
  const at = random.below(shape.length + 1);
  const change = random.below(7);
  if (change === 0) return shape.toSpliced(at, 0, random.pick([1, 1, 2]));
  if (change === 1 && shape.length > 0) return shape.toSpliced(random.below(shape.length), 1);
  if (change === 2 && shape.length > 0) return shape.slice(0, -1);
  if (change === 3 && shape.length > 0) return shape.with(random.below(shape.length), random.pick([0, 1, 2, 3]));
  return shape;
}

const MEETING = [
  "concat",
  "concat",
  "stack",
  "add",
  "where",
  "maximum",
  "matmul",
  "gatherAlong",
  "fma",
  "expand",
  "gather",
];

/** Operands of several ranks: they fit, or the op is rejected before it holds memory. */
export function meeting(draft: Draft): Theme {
  const { random, shape } = draft;
  const op = random.pick(MEETING);
  const dtype = draft.floatDType();
  const isMixed = /where|gather/.test(op);
  const count = /where|fma/.test(op) ? 3 : /expand/.test(op) ? 1 : /concat|stack/.test(op) ? 1 + random.below(4) : 2;
  const operands = Array.from({ length: count }, (_, i) => {
    const isIndex = isMixed && (op === "where" ? i === 0 : i === 1);
    const own = i === 0 ? shape : nearly(draft, shape);
    return isIndex
      ? draft.leaf("data", own, op === "where" ? "bool" : "i32", { ...draft.fill("whole"), below: 2 })
      : draft.leaf("parameter", own, dtype);
  });
  const axis = draft.chance(0.4) ? -1 : random.below(2 * shape.length + 2) - shape.length - 1;
  const options: Options = op === "expand" ? { shape: nearly(draft, [2, ...shape]) } : { axis };
  const given = /concat|stack|gatherAlong|expand/.test(op) ? options : {};
  if (interpretOp(op, operands, given) === null) {
    draft.statements.push({ do: "op", id: draft.newId("t"), op, of: operands.map(({ id }) => id), options: given });
    return { isOver: true };
  }
  const settled = "axis" in given && axis < 0 ? { axis: axis + shape.length + (op === "stack" ? 1 : 0) } : given;
  const loss = weighed(draft, draft.op(op, operands, {}, settled));
  backward(draft, loss);
  return { results: [loss.id] };
}
