/** What each statement of a program does. */
import {
  clipGradNorm,
  clipGradNormEach,
  clipGradValue,
  type DType,
  grad,
  keep as keepTensor,
  noGrad,
  OptError,
  onGradient,
  rand,
  randn,
  span,
  type Tensor,
  tensor,
  tidy,
} from "@opt/core";
import { indexOf } from "./indexing";
import { denseOf } from "./observe";
import { OPS } from "./ops";
import { type Id, madeBy, type Options, type Statement } from "./program";
import { type World, WrongResult } from "./world";

type Of<Kind extends Statement["do"]> = Extract<Statement, { do: Kind }>;

export function execute(world: World, statement: Statement): void {
  world.at = describe(statement);
  (EXECUTE[statement.do] as (world: World, statement: Statement) => void)(world, statement);
}

/** Executes what a hook does, and forgets what it made. */
export function executeHook(world: World, body: readonly Statement[]): void {
  const outer = new Set(world.values.keys());
  world.inTidy(() =>
    tidy(() => {
      for (const statement of body) execute(world, statement);
    }),
  );
  for (const id of [...world.values.keys()]) if (!outer.has(id)) world.values.delete(id);
}

const plainOf = ({ plain, outside }: World, name: Id): number | undefined =>
  (plain[name] ?? outside[name]) as number | undefined;

function describe(statement: Statement): string {
  return statement.do === "op" ? `${statement.id} = ${statement.op}` : statement.do;
}

const EXECUTE: { [Kind in Statement["do"]]: (world: World, statement: Of<Kind>) => void } = {
  op(world, { id, op, of, options = {} }) {
    const kind = OPS[op]!;
    const given = of.map((operand) =>
      typeof operand === "number" ? operand : (plainOf(world, operand) ?? world.value(operand)),
    );
    const apart = world.mode.apart && !kind.view;
    const operands = given.map((operand) =>
      apart && typeof operand !== "number" ? world.made(operand.clone()) : operand,
    );
    const own = ownOptions(world, op, options);
    // A cast that this mode's dtypes make none of must still be a copy.
    const isCopy = op === "to" && options.dtype !== options.from && own.dtype === (operands[0] as Tensor).dtype;
    const result = isCopy ? (operands[0] as Tensor).clone() : kind.run(operands, own);
    if (!given.includes(result)) world.made(result);
    const expected = kind.spec(
      operands.filter((operand) => typeof operand !== "number"),
      own,
      operands.filter((operand) => typeof operand === "number"),
    );
    if (String(result.shape) !== String(expected.shape) || result.dtype !== expected.dtype) {
      throw new WrongResult(
        "gives another shape or dtype",
        `${id} = ${op} must be ${expected.dtype} [${expected.shape}], got ${result.dtype} [${result.shape}]`,
      );
    }
    world.values.set(id, result);
  },
  constant(world, { id, shape, dtype, fill }) {
    const spec = { shape, dtype: world.dtype(dtype), device: world.mode.device };
    world.values.set(id, world.made(tensor(world.numbers(fill, spec), spec)));
  },
  random(world, { id, shape, dtype, normal }) {
    const draw = normal ? randn : rand;
    const { device } = world.mode;
    const own = world.dtype(dtype);
    // Drawn numbers are rounded to the dtype that is written: the reference must have the same.
    const drawn = draw(shape, { dtype: dtype === "f64" ? own : dtype, device, generator: world.generator });
    world.values.set(id, world.made(drawn.dtype === own ? drawn : drawn.to(own)));
    if (drawn.dtype !== own) drawn.dispose();
  },
  set(world, { to, from }) {
    const target = world.value(to);
    if (typeof from === "string") target.set(world.value(from));
    else {
      const source = tensor(world.numbers(from, target), {
        shape: target.shape,
        dtype: target.dtype,
        device: target.device,
      });
      target.set(source);
      source.dispose();
    }
  },
  move(world, { of, from, to, count }) {
    const x = world.value(of);
    const [target, source] = [world.made(span(x, to, to + count)), world.made(span(x, from, from + count))];
    target.set(source);
  },
  assign(world, { of, index, tensors, from }) {
    const picks = tensors.map((id) => world.value(id));
    world.value(of).assign(indexOf(index, picks), world.value(from));
  },
  writePart(world, { of, op, options, from }) {
    const part = world.made(OPS[op]!.run([world.value(of)], options));
    part.set(world.value(from));
  },
  stale(world, { of, by }) {
    const [x, y] = [world.value(of), world.value(by)];
    if (world.mode.apart) {
      y.set(x); // a product of copies could be differentiated
      return;
    }
    const loss = world.made(world.made(x.mul(y)).sum());
    y.set(x);
    try {
      loss.backward();
    } catch (error) {
      if (error instanceof OptError && error.code === "CHANGED") return;
      throw error;
    }
    throw new WrongResult("differentiates what was overwritten", `${of}.mul(${by}) after ${by}.set(${of})`);
  },
  tidy(world, { body, returns }) {
    const outer = new Set(world.values.keys());
    const kept = new Set<Tensor>();
    const inner: Tensor[] = [];
    const returned = world.inTidy(() =>
      tidy(() => {
        for (const one of body) {
          execute(world, one);
          if (one.do === "keep") kept.add(world.value(one.of));
          const id = madeBy(one);
          if (id !== undefined) inner.push(world.value(id));
        }
        return returns.map((id) => world.value(id));
      }),
    );
    for (const result of returned) world.made(result);
    for (const one of inner) {
      if (returned.includes(one) !== one.isDisposed || kept.has(one) || isOuter(world, outer, one)) continue;
      throw new WrongResult(
        "frees wrongly",
        `tidy ${one.isDisposed ? "freed what it returned" : "left what was made inside"}`,
      );
    }
    for (const id of [...world.values.keys()])
      if (!outer.has(id) && world.value(id).isDisposed) world.values.delete(id);
  },
  noGrad(world, { body }) {
    noGrad(() => {
      for (const one of body) execute(world, one);
    });
  },
  when(world, { flag, body }) {
    if (world.plain[flag]) for (const one of body) execute(world, one);
  },
  freeze(world, { of, frozen }) {
    world.value(of).requiresGrad = !frozen;
  },
  freezeLayer(world, { layer }) {
    world.layers[layer]!.freeze();
  },
  follow(world, { layer, other }) {
    const sources = [...world.layers[other]!.parameters()];
    noGrad(() => {
      for (const [i, weight] of [...world.layers[layer]!.parameters()].entries()) weight.set(sources[i]!);
    });
  },
  replace(world, { layer, seed }) {
    world.replace(layer, seed);
  },
  property(world, { layer, name, value }) {
    Object.assign(world.layers[layer]!, { [name]: value });
  },
  keep(world, { of }) {
    world.own(keepTensor(world.value(of)));
  },
  dispose(world, { of }) {
    world.value(of).dispose();
  },
  backward(world, { of, gradient, scaled, retain: retainGraph = false }) {
    const given = gradient === null ? undefined : world.value(gradient);
    if (scaled) world.made(world.scaler!.scale(world.value(of))).backward();
    else world.value(of).backward(given, { retainGraph });
  },
  grad(world, { id, of, by }) {
    const [gradient] = grad(world.value(of), [world.value(by)], { createGraph: true });
    world.values.set(id, world.made(gradient));
  },
  gradient(world, { of, value }) {
    const leaf = world.value(of);
    if (value === null) leaf.grad = null;
    else if (typeof value === "string") leaf.grad = world.value(value);
    else if (typeof value === "number") {
      const { grad } = leaf;
      if (grad !== null) leaf.grad = world.own(noGrad(() => tidy(() => denseOf(grad).mul(value))));
    } else {
      const { shape, dtype, device } = leaf;
      leaf.grad = world.own(keepTensor(tensor(world.numbers(value, leaf), { shape, dtype, device })));
    }
  },
  clip(world, { how, params, limit, normType = 2 }) {
    const list = params.map((id) => world.value(id));
    if (how === "norm") world.made(clipGradNorm(list, limit, { normType }));
    else if (how === "each") clipGradNormEach(list, limit);
    else clipGradValue(list, limit);
  },
  step(world, { optimizer: id, scaled }) {
    const { optimizer } = world.trainer(id);
    if (scaled) void world.scaler!.step(optimizer);
    else optimizer.step();
  },
  unscale(world, { optimizer }) {
    world.scaler!.unscale(world.trainer(optimizer).optimizer);
  },
  update(world) {
    void world.scaler!.update();
  },
  average(world, { average }) {
    world.averages.get(average)!.update();
  },
  averaged(world, { average }) {
    world.averages.get(average)!.averaged(() => undefined);
  },
  schedule(world, { optimizer }) {
    world.trainer(optimizer).schedule?.step();
  },
  zeroGrad(world, { optimizer, setToNull }) {
    world.trainer(optimizer).optimizer.zeroGrad({ setToNull });
  },
  save(world, { optimizer }) {
    const { groups, state } = world.trainer(optimizer).optimizer.stateDict();
    const copied = Object.entries(state).map(([name, entry]) => [
      name,
      Object.fromEntries(
        Object.entries(entry).map(([key, part]) => [
          key,
          typeof part === "number" ? part : world.own(keepTensor(part.clone())),
        ]),
      ),
    ]);
    world.checkpoints.set(optimizer, { groups, state: Object.fromEntries(copied) });
  },
  load(world, { optimizer }) {
    const state = world.checkpoints.get(optimizer);
    if (state !== undefined) world.trainer(optimizer).optimizer.loadStateDict(state);
  },
  reset(world, { optimizer }) {
    world.trainer(optimizer).optimizer.dispose();
  },
  addGroup(world, group) {
    world.addGroup(group);
  },
  train(world, { training, layers }) {
    world.train(training, layers);
  },
  tie(world, { layer, name, to }) {
    world.tie(layer, name, world.value(to));
  },
  onForward(world, { layer, factor }) {
    world.layers[layer]!.onForward((_layer, _inputs, output) => output.mul(factor));
  },
  onGradient(world, { of, body }) {
    onGradient(world.value(of), () => executeHook(world, body));
  },
  option(world, { optimizer, group, name, value }) {
    (world.trainer(optimizer).optimizer.groups[group] as Record<string, unknown>)[name] = value;
  },
};

/** Options as this world has them: its dtypes, its layers. */
function ownOptions(world: World, op: string, options: Options): Options {
  if (op === "to") return { dtype: world.dtype(options.dtype as DType) };
  if (options.call !== undefined) return { ...options, call: world.mode.layers[options.call as string] };
  return options.layer === undefined ? options : { ...options, layer: world.layers[options.layer as Id] };
}

function isOuter(world: World, outer: ReadonlySet<string>, one: Tensor): boolean {
  return [...outer].some((id) => world.values.get(id) === one);
}
