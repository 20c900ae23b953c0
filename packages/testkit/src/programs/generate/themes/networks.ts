/** Layers: frozen, replaced, in other modes, with padding. */
import type { Id, Shape, Statement } from "../../program";
import type { Draft } from "../draft";
import { LAYERS } from "../layers";
import { backward, sumOf, type Theme, weighed } from "./theme";

/** A network that follows another, frozen one: the targets of reinforcement learning, and teachers. */
export function following(draft: Draft): Theme {
  const { random } = draft;
  const [width, out] = [random.pick([1, 2, 3]), random.pick([1, 2])];
  const dtype = draft.floatDType();
  const shapes = { weight: [out, width], bias: [out] };
  const [online, own] = draft.layer("Linear", [width, out], dtype, shapes, { bias: true });
  const [target, others] = draft.layer("Linear", [width, out], dtype, shapes, { bias: true });
  const x = draft.leaf("data", [random.pick([1, 3]), width], dtype);
  const a = draft.op("Linear", [x, ...own], { bound: 4 * width + 1 }, { layer: online });
  const b = draft.op("Linear", [x, ...others], { bound: 4 * width + 1 }, { layer: target });
  const apart = draft.op("sub", [a, b], { bound: 8 * width + 2 });
  const loss = sumOf(draft, draft.op("mul", [apart, apart], {}));
  backward(draft, loss);
  draft.statements.push({ do: "follow", layer: target, other: online });
  return { results: [loss.id], prelude: [{ do: "freezeLayer", layer: target }] };
}

/** An embedding with padding, dense or row-sparse, whose gradient is clipped. */
export function padding(draft: Draft): Theme {
  const { random } = draft;
  const [count, width] = [random.pick([2, 3, 5]), random.pick([1, 2, 4])];
  const paddingIdx = random.below(count);
  const dtype = draft.floatDType();
  const options = { sparse: draft.chance(0.7), paddingIdx };
  const [layer, weights] = draft.layer("Embedding", [count, width], dtype, { weight: [count, width] }, options);
  const indices = draft.leaf("data", random.pick<Shape>([[3], [5], [2, 2]]), "i32", {
    ...draft.fill("whole"),
    below: count,
  });
  const rows = draft.op("Embedding", [indices, ...weights], { bound: 1 }, { layer });
  const loss = weighed(draft, rows);
  backward(draft, loss);
  const params = weights.map(({ id }) => id);
  const how = random.pick(["norm", "norm", "each", "value"] as const);
  if (draft.chance(0.8)) draft.statements.push({ do: "clip", how, params, limit: random.pick([0.1, 0.5, 1]) });
  return { results: [loss.id] };
}

/** Layers that train and evaluate differently. */
export function switching(draft: Draft): Theme {
  const { random } = draft;
  const [rows, channels] = [random.pick([3, 4, 6]), random.pick([1, 2, 3])];
  const x = draft.leaf("parameter", [rows, channels], draft.floatDType());
  const normal = LAYERS[5]!(draft, draft.op("mul", [x, 1], {}))!;
  let last = normal;
  if (draft.chance(0.3)) {
    const [layer] = draft.layer("Dropout", [random.pick([0, 1])], normal.dtype, {});
    last = draft.op("Dropout", [normal], {}, { layer });
  }
  const loss = weighed(draft, last);
  backward(draft, loss);
  return { results: [loss.id] };
}

/** A network whose parts are replaced between calls, and whose properties change. */
export function replacing(draft: Draft): Theme {
  const { random } = draft;
  const x = draft.leaf("data", [random.pick([3, 4]), random.pick([1, 3])], draft.floatDType());
  const first = LAYERS[0]!(draft, x)!;
  const normal = draft.chance(0.5) ? LAYERS[5]!(draft, first)! : first;
  const [layer] = draft.layer("Dropout", [random.pick([0, 1])], normal.dtype, {});
  const loss = weighed(draft, draft.op("Dropout", [normal], {}, { layer }));
  backward(draft, loss);
  const changes: Statement[] = draft.layers.map(({ id, kind }) => {
    if (kind === "Dropout") return { do: "property", layer: id, name: "p", value: random.pick([0, 1]) };
    const { trackRunningStats } = draft.layers.find((one) => one.id === id)!.options;
    const isNormal = trackRunningStats && draft.chance(0.5);
    if (isNormal) return { do: "property", layer: id, name: "momentum", value: random.pick([0, 0.5]) };
    return { do: "replace", layer: id, seed: random.below(1 << 20) };
  });
  // An optimizer would go on with the parameters that are gone.
  return { results: [loss.id], between: [random.pick(changes)], isWithoutSteps: true };
}

/** Parts in modes of their own: a frozen batch norm beside one that trains, and a dropout of all or nothing. */
export function partly(draft: Draft): Theme {
  const { random } = draft;
  const x = draft.leaf("parameter", [random.pick([3, 4]), random.pick([1, 2])], draft.floatDType());
  let last = draft.op("mul", [x, 1], {});
  const parts: Id[] = [];
  for (let i = 0; i < 2; i++) {
    last = LAYERS[5]!(draft, last)!;
    parts.push(draft.layers.at(-1)!.id);
    last = draft.op("mul", [last, 0.5], {});
  }
  const [layer] = draft.layer("Dropout", [random.pick([0, 0, 1])], last.dtype, {});
  parts.push(layer);
  const loss = weighed(draft, draft.op("Dropout", [last], {}, { layer }));
  backward(draft, loss);
  const some = (): Id[] => [random.pick(parts)];
  const prelude: Statement[] = [{ do: "train", training: false, layers: some() }];
  const between: Statement[] = [{ do: "train", training: draft.chance(0.5), layers: some() }];
  return { results: [loss.id], prelude, between };
}

/** One tensor in two layers: its gradient is the sum of both. */
export function tying(draft: Draft): Theme {
  const { random } = draft;
  const [count, width] = [random.pick([2, 3]), random.pick([1, 2])];
  const dtype = draft.floatDType();
  const indices = draft.leaf("data", [random.pick([1, 3])], "i32", { ...draft.fill("whole"), below: count });
  const options = { sparse: draft.chance(0.3) };
  const [table, [weight]] = draft.layer("Embedding", [count, width], dtype, { weight: [count, width] }, options);
  const [head, bias] = draft.layer("Linear", [width, count], dtype, { bias: [count] }, { bias: true });
  const rows = draft.op("Embedding", [indices, weight!], { bound: 1 }, { layer: table });
  const bent = draft.chance(0.5) ? draft.op("tanh", [rows], { bound: 1, low: -1 }) : rows;
  const scores = draft.op("Linear", [bent, weight!, ...bias], { bound: width + 1 }, { layer: head });
  const loss = weighed(draft, scores);
  backward(draft, loss);
  return { results: [loss.id], prelude: [{ do: "tie", layer: head, name: "weight", to: weight!.id }] };
}
