/** PyTorch numbers the parameters of an optimizer: their names come from `param_names`, or from the model in the same file. */
import type { Json, SourceTensor, TensorSource } from "../../format/source";
import type { Renaming } from "./renaming";

const STATE = /^(.*?)state\.(\d+)\.([^.]+)$/;
const BUFFERS = /(^|\.)(running_mean|running_var|num_batches_tracked)$/;

export function torchNames(source: TensorSource): Renaming {
  const names = new Map<string, string>();
  const prefixes = new Set<string>();
  for (const name of source.tensors.keys()) {
    const prefix = STATE.exec(name)?.[1];
    if (prefix !== undefined) prefixes.add(prefix);
  }
  const steps = new Map<string, number>();
  for (const prefix of prefixes) nameStates(source, prefix, names, steps);
  return { names, steps };
}

function nameStates(
  source: TensorSource,
  prefix: string,
  names: Map<string, string>,
  steps: Map<string, number>,
): void {
  const order = numbersInOrder(source.values, prefix);
  const written = writtenNames(source.values, prefix);
  const model = written === undefined ? modelInOrder(source, prefix, order) : undefined;
  if (written === undefined && model === undefined) return;
  const parameterOf = (number: string): string | undefined =>
    written?.get(number) ?? model?.parameters[order.indexOf(number)];
  for (const name of source.tensors.keys()) {
    const [, found, number, state] = STATE.exec(name) ?? [];
    const parameter = found === prefix ? parameterOf(number!) : undefined;
    if (parameter !== undefined) names.set(name, `${parameter}.${state}`);
  }
  // Before PyTorch 1.12 steps were plain numbers.
  for (const number of order) {
    const parameter = parameterOf(number);
    const step = source.values[`${prefix}state.${number}.step`];
    if (parameter !== undefined && typeof step === "number") steps.set(parameter, step);
  }
  // The model was saved beside its optimizer, under a word of its own: the parameters' names begin after it.
  for (const name of model?.inside ?? []) names.set(name, name.slice(model!.word.length));
}

/** The parameters' numbers in the order of all groups. */
function numbersInOrder(values: TensorSource["values"], prefix: string): string[] {
  return listed(values, prefix, "params").map(([, number]) => String(number));
}

/** Number to name, where the optimizer was made with named parameters (PyTorch 2.6 on). */
function writtenNames(values: TensorSource["values"], prefix: string): Map<string, string> | undefined {
  const places = new Map(listed(values, prefix, "param_names"));
  if (places.size === 0) return undefined;
  return new Map(
    listed(values, prefix, "params").flatMap(([place, number]) => {
      const name = places.get(place);
      return typeof name === "string" ? [[String(number), name]] : [];
    }),
  );
}

/** `param_groups.<group>.<list>.<i>` as pairs of `<group>.<i>` and the value, in order. */
function listed(values: TensorSource["values"], prefix: string, list: string): [string, Json][] {
  const found: [string, Json][] = [];
  for (let group = 0; ; group++) {
    const start = `${prefix}param_groups.${group}.`;
    let i = 0;
    for (; Object.hasOwn(values, `${start}${list}.${i}`); i++) {
      found.push([`${group}.${i}`, values[`${start}${list}.${i}`]!]);
    }
    if (i === 0 && !Object.keys(values).some((key) => key.startsWith(start))) return found;
  }
}

/**
 * The model of the same file whose parameters, in order, fit the optimizer's: as many, and of the shapes of their states. More or
 * fewer is no proof, so that nothing is guessed.
 */
function modelInOrder(
  source: TensorSource,
  prefix: string,
  order: readonly string[],
): { word: string; inside: string[]; parameters: string[] } | undefined {
  const others = [...source.tensors.values()].filter(({ name }) => !STATE.test(name));
  const words = new Set(others.map(({ name }) => name.slice(0, name.indexOf(".") + 1)));
  const fitting = [...words, ""].flatMap((word) => {
    const inside = others.filter(({ name }) => name.startsWith(word));
    const parameters = inside.filter(({ name }) => !BUFFERS.test(name));
    const fits =
      parameters.length === order.length && order.every((number, i) => suits(source, prefix, number, parameters[i]!));
    const named = (tensor: SourceTensor): string => tensor.name.slice(word.length);
    return fits ? [{ word, inside: inside.map(({ name }) => name), parameters: parameters.map(named) }] : [];
  });
  return fitting.length > 0 && order.length > 0 ? fitting[0] : undefined;
}

function suits(source: TensorSource, prefix: string, number: string, parameter: SourceTensor): boolean {
  for (const state of ["exp_avg", "exp_avg_sq", "momentum_buffer"]) {
    const tensor = source.tensors.get(`${prefix}state.${number}.${state}`);
    if (tensor !== undefined && `${tensor.shape}` !== `${parameter.shape}`) return false;
  }
  return true;
}
