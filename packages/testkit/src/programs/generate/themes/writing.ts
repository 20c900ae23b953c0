/** What is overwritten in place: through a part, by an index, within one memory, or between reads. */
import { interpretOp } from "../../interpret/interpret";
import { sizeOf } from "../../numbers";
import type { IndexItem, Options, Shape, Statement } from "../../program";
import type { Draft, Value } from "../draft";
import { backward, type Theme, weighed } from "./theme";

/** Elements overwritten through a part, or by others of the same memory. */
export function writing(draft: Draft): Theme {
  const { random } = draft;
  const x = draft.leaf(draft.chance(0.5) ? "parameter" : "data", draft.shape, draft.floatDType());
  if (x.shape.length === 0 || draft.isEmpty(x)) return moving(draft);
  const axis = random.below(x.shape.length);
  const start = random.below(x.shape[axis]!);
  const end = start + 1 + random.below(x.shape[axis]! - start);
  const parts: [string, Options][] = [
    ["slice", { start, end, axis }],
    ["slice", { start, end, axis }],
    ["split", { size: 1, axis, piece: start }],
    ["permute", { axes: x.shape.map((_, i) => i).reverse() }],
    ["reshape", { shape: [sizeOf(x.shape)] }],
    ["unsqueeze", { axis: 0 }],
  ];
  const [op, options] = random.pick(parts);
  draft.mayReject.add("BAD_STATE"); // where a part is a copy
  const from = draft.leaf("data", interpretOp(op, [x], options)!, x.dtype, draft.fill("grid"));
  const body: Statement[] = [{ do: "writePart", of: x.id, op, options, from: from.id }];
  draft.statements.push({ do: "noGrad", body });
  const loss = draft.op("mul", [x, 2], {});
  return { results: [loss.id] };
}

/** What brackets choose: read, or written in a new tensor, in place, or in place on the tape. */
export function indexing(draft: Draft): Theme {
  const { random } = draft;
  const shape = draft.shape.length === 0 || sizeOf(draft.shape) === 0 ? [3, 4] : draft.shape;
  const dtype = draft.floatDType();
  const how = random.pick(["at", "indexPut", "assign", "assign", "taped"] as const);
  const x = draft.leaf(how === "assign" && draft.chance(0.5) ? "data" : "parameter", shape, dtype);
  const tensors: Value[] = [];
  const masked = how === "assign" && draft.chance(0.3) ? random.below(shape.length) : -1;
  const index = shape.slice(0, 1 + random.below(shape.length)).map((extent, axis): IndexItem => {
    if (axis === masked) {
      tensors.push(draft.leaf("data", [extent], "bool", { ...draft.fill("whole"), below: 2 }));
      draft.compiles = false;
      return "mask";
    }
    const kind = random.below(5);
    if (kind === 0) return random.below(2 * extent) - extent;
    if (kind === 1) return null;
    if (kind < 4 || masked >= 0) {
      const start = random.below(extent);
      return random.pick([
        [start, start + 1 + random.below(extent)],
        [null, -1],
        [start, null, 2],
        [-1, null],
      ]);
    }
    const positions = random.pick<Shape>([[2], [3], [2, 2]]);
    tensors.push(draft.leaf("data", tensors[0]?.shape ?? positions, "i32", { ...draft.fill("whole"), below: extent }));
    return "tensor";
  });
  if (how === "at") {
    const loss = weighed(draft, draft.op("at", [x, ...tensors], {}, { index }));
    backward(draft, loss);
    return { results: [loss.id] };
  }
  const place = masked >= 0 ? [] : interpretOp("at", [x, ...tensors], { index })!;
  const value = draft.leaf("parameter", draft.chance(0.3) ? [] : place, dtype);
  if (how === "indexPut") {
    const options = { index, accumulate: draft.chance(0.4) };
    const loss = weighed(draft, draft.op("indexPut", [x, value, ...tensors], {}, options));
    backward(draft, loss);
    return { results: [loss.id] };
  }
  const picks = tensors.map(({ id }) => id);
  if (how === "assign") {
    const body: Statement[] = [{ do: "assign", of: x.id, index, tensors: picks, from: value.id }];
    draft.statements.push({ do: "noGrad", body });
    return {};
  }
  const y = draft.op("mul", [x, 2], {});
  draft.statements.push({ do: "assign", of: y.id, index, tensors: picks, from: value.id });
  const loss = weighed(draft, draft.op("tanh", [y], { bound: 1 }));
  backward(draft, loss);
  return { results: [loss.id] };
}

/** The memory of a tensor moved within itself: little, or enough for many threads. */
export function moving(draft: Draft): Theme {
  const { random } = draft;
  const size = random.pick([5, 40, 1000, 40_000, 100_001]);
  const x = draft.leaf(draft.chance(0.5) ? "parameter" : "data", [size], random.pick(["f32", "f32", "f64", "bf16"]));
  const distance = random.pick([1, 2, 3, 17, Math.floor(size / 2)]) % size;
  const count = size - distance;
  const [from, to] = draft.chance(0.5) ? [0, distance] : [distance, 0];
  draft.statements.push({ do: "noGrad", body: [{ do: "move", of: x.id, from, to, count }] });
  return {};
}

/** Reads before and after a tensor is overwritten, outside of the tape. */
export function overwriting(draft: Draft): Theme {
  const { random, shape } = draft;
  const dtype = draft.floatDType();
  const [w, x] = [draft.leaf("parameter", shape, dtype), draft.leaf("data", shape, dtype)];
  draft.recording = false;
  let read: Value = w;
  const body = draft.inner(() => {
    const steps = 3 + random.below(4);
    const at = random.below(steps);
    for (let i = 0; i < steps; i++) {
      if (i === at) {
        draft.statements.push({ do: "set", to: w.id, from: x.id });
        continue;
      }
      read = draft.op(random.pick(["mul", "add", "sub"]), [read, random.pick([2, 0.5, w, x])], { bound: 4 });
    }
  });
  draft.recording = true;
  draft.statements.push({ do: "noGrad", body });
  return { results: read === w ? [] : [read.id] };
}
