/** Keras 3 numbers its optimizer's variables: the model's config tells the order of layers, and shapes prove it. */
import type { SourceTensor, TensorSource } from "../../format/source";
import { isObject } from "../bytes/json";
import type { NamingContext, Renaming, UnprovenState } from "../names/renaming";
import { KERAS_STATES } from "../names/states";

const OPTIMIZER = "optimizer/vars/";
/** Number 0 counts the steps, 1 is the learning rate; scalars after them (Nadam's product) belong to no parameter. */
const COUNTERS = [`${OPTIMIZER}0`, `${OPTIMIZER}1`];

export function kerasNames({ source }: NamingContext): Renaming {
  const names = new Map<string, string>();
  const stored = [...source.tensors.values()]
    .filter(({ name, shape }) => shape.length > 0 && !COUNTERS.includes(name) && /^optimizer(_weights)?\//.test(name))
    .sort((a, b) => numberOf(a) - numberOf(b));
  const proven = { names, counter: `${OPTIMIZER}0` };
  const variables = trainableVariables(source);
  const states = statesOf(source);
  const unproven = stored.map(
    ({ name, shape }): UnprovenState => ({ key: name, meaning: `<parameter of [${shape.join(", ")}]>.<state>` }),
  );
  if (variables === undefined || states === undefined) return { ...proven, unproven };

  const assigned = stored
    .slice(0, variables.length * states.length)
    .map((tensor, i): [SourceTensor, SourceTensor, string] => {
      return [tensor, variables[Math.floor(i / states.length)]!, states[i % states.length]!];
    });
  const fits = assigned.every(([tensor, variable]) => `${tensor.shape}` === `${variable.shape}`);
  // AMSGrad's maxima follow after all pairs, one for each parameter.
  const maxima = stored.slice(assigned.length);
  const whole = assigned.length === variables.length * states.length && [0, variables.length].includes(maxima.length);
  if (!fits || !whole || !maxima.every((tensor, i) => `${tensor.shape}` === `${variables[i]!.shape}`)) {
    return { ...proven, unproven };
  }
  for (const [tensor, variable, state] of assigned) names.set(tensor.name, `${variable.name}.${state}`);
  for (const [i, tensor] of maxima.entries()) names.set(tensor.name, `${variables[i]!.name}.max_exp_avg_sq`);
  return proven;
}

function numberOf({ name }: SourceTensor): number {
  return Number(name.slice(OPTIMIZER.length)) || 0;
}

/** The states that the optimizer keeps for each parameter, in order; undefined where the config does not name one that is known. */
function statesOf({ values }: TensorSource): readonly string[] | undefined {
  const config = isObject(values.config) ? values.config : {};
  const optimizer = isObject(config.compile_config) ? config.compile_config.optimizer : undefined;
  const name = isObject(optimizer) ? optimizer.class_name : optimizer;
  return typeof name === "string" && Object.hasOwn(KERAS_STATES, name) ? KERAS_STATES[name] : undefined;
}

/** The trainable variables in the order of the model's layers; undefined where a layer is missing from the file. */
function trainableVariables(source: TensorSource): SourceTensor[] | undefined {
  const config = isObject(source.values.config) ? source.values.config : {};
  const model = isObject(config.config) ? config.config : {};
  if (!Array.isArray(model.layers)) return undefined;
  const counts = new Map<string, number>();
  const variables: SourceTensor[] = [];
  for (const layer of model.layers) {
    if (!isObject(layer) || typeof layer.class_name !== "string") return undefined;
    const kind = snakeCase(layer.class_name);
    const count = counts.get(kind) ?? 0;
    counts.set(kind, count + 1);
    const folder = `layers/${count === 0 ? kind : `${kind}_${count}`}`;
    const own = isObject(layer.config) ? layer.config : {};
    if (own.trainable === false) continue;
    // A model inside of the model has layers of its own: its order is not told apart here.
    if (Array.isArray(own.layers)) return undefined;
    const trainable =
      kind === "batch_normalization" ? [own.scale, own.center].filter((on) => on !== false).length : Infinity;
    for (const path of variablePaths(source, folder).slice(0, trainable)) variables.push(source.tensors.get(path)!);
  }
  return variables;
}

/** A layer's own variables, then those of its parts (an LSTM keeps them in its cell), by number. */
function variablePaths(source: TensorSource, folder: string): string[] {
  const own: string[] = [];
  for (let i = 0; source.tensors.has(`${folder}/vars/${i}`); i++) own.push(`${folder}/vars/${i}`);
  const inner = [...source.tensors.keys()].filter(
    (name) => name.startsWith(`${folder}/`) && !name.startsWith(`${folder}/vars/`),
  );
  return [...own, ...inner.filter((name) => !name.includes("seed_generator"))];
}

/** As Keras turns class names into folder names: `BatchNormalization` becomes `batch_normalization`. */
function snakeCase(name: string): string {
  return name
    .replace(/\W+/g, "")
    .replace(/(.)([A-Z][a-z]+)/g, "$1_$2")
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase();
}
