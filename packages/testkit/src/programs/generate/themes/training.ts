/** Training steps that do more than one backward and one update: accumulation, hooks, another backward, reads around a step. */
import { sizeOf } from "../../numbers";
import type { Id, Statement } from "../../program";
import type { Draft, Value } from "../draft";
import { backward, sumOf, type Theme, weighed } from "./theme";

function square(draft: Draft, x: Value): Value {
  return sumOf(draft, draft.op("mul", [x, x], { bound: x.bound ** 2 }));
}

/** Two losses with a backward each. Only some calls step, so gradients add up over calls. */
export function accumulating(draft: Draft): Theme {
  const { random, shape } = draft;
  const w = draft.leaf("parameter", shape, draft.floatDType());
  const results: Id[] = [];
  for (let i = 0; i < 2; i++) {
    const x = draft.leaf("data", shape, w.dtype);
    const product = draft.op(random.pick(["mul", "sub"]), [w, x], { bound: 16 });
    const loss = draft.chance(0.5) ? square(draft, product) : weighed(draft, product);
    backward(draft, loss);
    results.push(loss.id);
  }
  return { results, stepsWhen: draft.argument("b").scalar };
}

/** A second backward of one loss: it adds the same gradient once more, or is rejected where the first has freed the graph. */
export function again(draft: Draft): Theme {
  const w = draft.leaf("parameter", draft.shape, draft.floatDType());
  const loss = square(draft, draft.op("tanh", [w], { bound: 1, low: -1 }));
  const isRetained = draft.chance(0.6);
  backward(draft, loss, isRetained);
  if (isRetained && draft.chance(0.3)) backward(draft, loss, true);
  backward(draft, loss);
  return isRetained ? { results: [loss.id] } : { isOver: true };
}

/** What a layer gives is changed by hooks after forward, and gradients by hooks after backward. At times it is called twice. */
export function hooked(draft: Draft): Theme {
  const { random } = draft;
  const [rows, width, out] = [random.pick([1, 3]), random.pick([1, 2]), random.pick([1, 2])];
  const dtype = draft.floatDType();
  const shapes = { weight: [out, width], bias: [out] };
  const [layer, weights] = draft.layer("Linear", [width, out], dtype, shapes, { bias: true });
  const called = () => {
    const x = draft.leaf("data", [rows, width], dtype);
    return draft.op("Linear", [x, ...weights], { bound: 4 * width + 1 }, { layer });
  };
  const forward: Statement = { do: "onForward", layer, factor: random.pick([2, -0.5]) };
  const prelude: Statement[] = draft.chance(0.7) ? [forward] : [];
  if (draft.chance(0.7)) {
    const { id } = random.pick(weights);
    // In place: a replay goes on with the gradient that was there.
    const body: Statement[] = [{ do: "clip", how: "value", params: [id], limit: random.pick([0.25, 1]) }];
    prelude.push({ do: "onGradient", of: id, body });
  }
  const first = called();
  const loss = square(draft, draft.chance(0.6) ? draft.op("mul", [called(), first], { bound: 81 }) : first);
  backward(draft, loss);
  return { results: [loss.id], prelude, between: draft.chance(0.4) ? [forward] : [] };
}

/** A number in a variable outside, which is another one in each call: a compiled function must find it. */
export function outside(draft: Draft): Theme {
  const { random } = draft;
  const shape = sizeOf(draft.shape) === 0 ? [2] : draft.shape;
  const x = draft.leaf("data", shape, draft.floatDType());
  const w = draft.leaf("parameter", shape, x.dtype);
  const scalar = { scalar: draft.newId("e") };
  const first = draft.op(random.pick(["mul", "add"]), draft.chance(0.5) ? [x, scalar] : [scalar, x], { bound: 16 });
  const loss = weighed(draft, draft.op("mul", [first, w], { bound: 64 }));
  backward(draft, loss);
  return { results: [loss.id], outside: [scalar.scalar], isWithoutSteps: true };
}

/** Steps between reads: what is read of a parameter before them, and what is made of it, and of the parameter, after them. */
export function around(draft: Draft, params: readonly Id[], steps: readonly Statement[]): [Statement[], Id] {
  const param = draft.random.pick(params);
  const [early, late, sum] = [draft.newId("t"), draft.newId("t"), draft.newId("t")];
  const read = (id: Id, op: string, of: readonly (Id | number)[]): Statement => ({
    do: "noGrad",
    body: [{ do: "op", id, op, of }],
  });
  const before = read(early, "mul", [param, draft.random.pick([0.5, 2, -1])]);
  return [[before, ...steps, read(late, "mul", [early, 3]), read(sum, "add", [late, param])], sum];
}
