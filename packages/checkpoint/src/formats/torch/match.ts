/** Finds the model that an optimizer of PyTorch trains, and which of its parameters each number is. */
import type { SourceTensor, TensorSource } from "../../format/source";
import { badState } from "../bytes/errors";
import type { NamingContext, UnprovenState } from "../names/renaming";
import { SHAPED_STATES } from "../names/states";
import { dictOf, type PythonTree, tensorOf } from "../python/tree";
import { namesInOrder } from "./model-order";
import { keyOf, survey, type TorchOptimizer } from "./optimizers";

const BUFFERS = /(^|\.)(running_mean|running_var|num_batches_tracked)$/;

/** Folders and archives of several files that PyTorch wrote, or safetensors beside them. */
export const JOINED_FORMATS: readonly string[] = ["Hugging Face Trainer", "Stable-Baselines3"];

const isOrdered = (tree: PythonTree) => typeof tree === "object" && tree !== null && "ordered" in tree;

/** What models are called beside their optimizer; other dicts of the same parameters (averages, copies) are not the model. */
const MODEL_WORDS = ["", "model", "state_dict", "model_state_dict", "net", "network", "module"];

/** A dict of tensors, or a file of tensors only, that may be the optimizer's model. */
interface Model {
  readonly prefix: string;
  readonly parameters: ReadonlyMap<string, SourceTensor>;
  /** Further names of tied weights: PyTorch's `parameters()` has only the first. */
  readonly tied: ReadonlySet<string>;
  readonly buffers: readonly string[];
  /** Whether the file keeps the model's order: safetensors files sort. */
  readonly ordered: boolean;
}

interface MatchedOptimizer {
  readonly optimizer: TorchOptimizer;
  /** By key: the parameter's name inside of the model. */
  readonly names: ReadonlyMap<string, string>;
  readonly model: Model | undefined;
  readonly unproven: readonly UnprovenState[];
}

function entriesOf({ groups, state }: TorchOptimizer, { tensors }: TensorSource): string[] {
  const keys = new Set([...groups.flatMap(({ params }) => params), ...state.keys()]);
  return [...keys].filter((key) =>
    [...(state.get(key)?.values() ?? [])].some((value) => tensors.has(tensorOf(value) ?? "")),
  );
}

export function modelsIn(source: TensorSource): Model[] {
  if (source.structure !== undefined) {
    return survey(source.structure as PythonTree).models.map(([prefix, tree]) => modelOf(prefix, tree, source));
  }
  return [splitBuffers("", [...source.tensors], false)];
}

export function modelOf(prefix: string, tree: PythonTree, source: TensorSource): Model {
  const held = (dictOf(tree) ?? []).flatMap(([key, value]): [string, SourceTensor][] => {
    const tensor = source.tensors.get(tensorOf(value) ?? "");
    return tensor === undefined ? [] : [[keyOf(key), tensor]];
  });
  // DCP keeps the order of ranks, and safetensors files sort; a state dict that PyTorch pickled is an OrderedDict.
  const isPickled = source.format === "PyTorch" || (JOINED_FORMATS.includes(source.format) && isOrdered(tree));
  return splitBuffers(prefix, held, isPickled);
}

function splitBuffers(prefix: string, held: readonly [string, SourceTensor][], ordered: boolean): Model {
  const parameters = new Map(held.filter(([name]) => !BUFFERS.test(name)));
  const buffers = held.map(([name]) => name).filter((name) => BUFFERS.test(name));
  const places = new Map<string, string>();
  const tied = new Set<string>();
  for (const [name, tensor] of parameters) {
    const place = placeOf(tensor);
    if (place !== undefined && places.has(place)) tied.add(name);
    else if (place !== undefined) places.set(place, name);
  }
  return { prefix, parameters, tied, buffers, ordered };
}

/** Where its elements are in the file; undefined where they are in several pieces. */
function placeOf({ dtype, shape, boxes: [box] }: SourceTensor): string | undefined {
  return box?.byteOffset === undefined || box.byteLength === 0
    ? undefined
    : JSON.stringify([box.file, box.byteOffset, dtype, shape]);
}

/** What PyTorch's `parameters()` has. */
function trainable({ parameters, tied }: Model): [string, SourceTensor][] {
  return [...parameters].filter(([name]) => !tied.has(name));
}

export function resolve(optimizer: TorchOptimizer, models: readonly Model[], context: NamingContext): MatchedOptimizer {
  return withStateless(matched(optimizer, models, context));
}

/**
 * Names the parameters without state too: frozen ones, and those that never had a gradient. Shapes say nothing of them, so they are told
 * where they are all that is left of the model, in one group.
 */
function withStateless(match: MatchedOptimizer): MatchedOptimizer {
  const { optimizer, names, model, unproven } = match;
  const stateless = optimizer.groups
    .map(({ params }) => params.filter((key) => !names.has(key)))
    .filter(({ length }) => length > 0);
  if (names.size === 0 || unproven.length > 0 || stateless.length === 0) return match;
  const taken = new Set(names.values());
  const left = model === undefined ? [] : trainable(model).filter(([name]) => !taken.has(name));
  const keys = stateless.flat();
  if (stateless.length === 1 && keys.length === left.length)
    return { ...match, names: new Map([...names, ...keys.map((key, i) => [key, left[i]![0]] as const)]) };
  const some = left.slice(0, 3).map(([name]) => name);
  const meaning = some.length === 0 ? "a parameter" : some.join(" | ") + (left.length > 3 ? " | ..." : "");
  return {
    ...match,
    unproven: keys.map((key) => ({ key: `${optimizer.prefix}state.${key}`, meaning, isStateless: true })),
  };
}

function matched(optimizer: TorchOptimizer, models: readonly Model[], context: NamingContext): MatchedOptimizer {
  const entries = entriesOf(optimizer, context.source);
  const given = new Map<string, string>();
  for (const { params, names } of optimizer.groups) {
    params.forEach((key, i) => {
      const written = optimizer.form === "numbered" ? names?.[i] : key;
      const name = context.map?.[`${optimizer.prefix}state.${key}`] ?? written;
      if (name !== undefined) given.set(key, name);
    });
  }
  const open = entries.filter((key) => !given.has(key));
  if (entries.length === 0)
    return { optimizer, names: given, model: trainedModel(optimizer, models, given), unproven: [] };
  if (open.length === 0) {
    const needed = entries.map((key) => given.get(key)!);
    const holding = models.filter(({ parameters }) => needed.every((name) => parameters.has(name)));
    return { optimizer, names: given, model: onlyModel(holding, context.source), unproven: [] };
  }
  const shapes = new Map(open.map((key) => [key, shapeOf(optimizer, key, context.source)]));
  const attempts = models.flatMap((model) => {
    const names = matchShapes(optimizer, shapes, model, given, context.parameterOrder === "model");
    return names === undefined ? [] : [{ model, names }];
  });
  const complete = attempts.filter(({ names }) => open.every((key) => names.has(key)));
  if (context.parameterOrder === "model" && complete.length > 0) {
    const problems = complete.map(({ model, names }) => disorderOf(optimizer, names, model));
    const [problem] = problems;
    if (!problems.includes(undefined)) throw badState(context.source.path, problem!, "Name them by a map (--map).");
  }
  const [first] = complete;
  if (first !== undefined) {
    const answers = new Set(complete.map(({ names }) => JSON.stringify(open.map((key) => names.get(key)))));
    const models = complete.map(({ model }) => model);
    const model = answers.size === 1 ? onlyModel(models, context.source) : undefined;
    if (model !== undefined) return { optimizer, names: new Map([...given, ...first.names]), model, unproven: [] };
  }
  const taken = new Set(given.values());
  const surplus =
    complete.length > 1
      ? copiesOf(complete.map(({ model }) => model))
      : attempts.flatMap(({ model }) => copyIn(optimizer, shapes, model, given));
  const unproven = open.map((key) => {
    const shape = shapes.get(key);
    const fits = ([name, tensor]: [string, SourceTensor]): boolean =>
      !taken.has(name) && (shape === undefined || `${tensor.shape}` === `${shape}`);
    const candidates = new Set(
      attempts.flatMap(({ model }) =>
        trainable(model)
          .filter(fits)
          .map(([name]) => name),
      ),
    );
    const some = [...candidates].slice(0, 3).join(" | ");
    const what = shape === undefined ? "a parameter" : `a parameter of [${shape.join(", ")}]`;
    return {
      key: `${optimizer.prefix}state.${key}`,
      meaning: some === "" ? what : candidates.size > 3 ? `${some} | ...` : some,
      surplus,
    };
  });
  return { optimizer, names: given, model: undefined, unproven };
}

/** Where there is no state (plain SGD, no step yet) names are needed for the options of groups alone, which positions tell as well. */
function trainedModel({ groups }: TorchOptimizer, models: readonly Model[], names: ReadonlyMap<string, string>) {
  const keys = groups.flatMap(({ params }) => params);
  const isNamed = names.size === keys.length;
  const holding = models.filter((model) =>
    isNamed ? keys.every((key) => model.parameters.has(names.get(key)!)) : trainable(model).length === keys.length,
  );
  return holding.length === 1 ? holding[0] : holding.find(({ prefix }) => MODEL_WORDS.includes(prefix.slice(0, -1)));
}

/** The one model, or the one with a model's name; undefined for none. @throws OptError BAD_STATE if several are equally likely */
function onlyModel(models: readonly Model[], source: TensorSource): Model | undefined {
  if (models.length <= 1) return models[0];
  const named = models.filter(({ prefix }) => MODEL_WORDS.includes(prefix.slice(0, -1)));
  if (named.length === 1) return named[0];
  const [a, b] = models.map(({ prefix }) => JSON.stringify(prefix));
  throw badState(
    source.path,
    `the optimizer's parameters stand under ${a} and under ${b}`,
    `Leave one out: exclude: ["${models.at(-1)!.prefix}*"].`,
  );
}

/** Patterns of the models that are not called as a model is: averages. */
function copiesOf(models: readonly Model[]): string[] {
  const others = models.filter(({ prefix }) => !MODEL_WORDS.includes(prefix.slice(0, -1)));
  return others.length < models.length ? others.map(({ prefix }) => `${prefix}*`) : [];
}

/** The pattern of a copy inside of the model, without which the model's order tells all names. */
function copyIn(
  optimizer: TorchOptimizer,
  shapes: ReadonlyMap<string, readonly number[] | undefined>,
  model: Model,
  given: ReadonlyMap<string, string>,
): string[] {
  const weights = trainable(model).filter(([, { shape }]) => shape.length > 0);
  const starts = weights.flatMap(([name]) => [...name.matchAll(/\./g)].map(({ index }) => name.slice(0, index + 1)));
  const shapesOf = (isCopy: boolean, start: string) =>
    weights.filter(([name]) => name.startsWith(start) === isCopy).map(([, { shape }]) => shape);
  for (const start of [...new Set(starts)].reverse()) {
    if (JSON.stringify(shapesOf(true, start)) !== JSON.stringify(shapesOf(false, start))) continue;
    const parameters = new Map([...model.parameters].filter(([name]) => !name.startsWith(start)));
    const names = matchShapes(optimizer, shapes, { ...model, parameters }, given, true);
    if (names?.size === shapes.size) return [`${model.prefix}${start}*`];
  }
  return [];
}

/** Names by key for the shapes that leave no doubt; undefined where the model does not have these shapes at all. */
function matchShapes(
  { groups }: TorchOptimizer,
  shapes: ReadonlyMap<string, readonly number[] | undefined>,
  model: Model,
  given: ReadonlyMap<string, string>,
  inOrder: boolean,
): Map<string, string> | undefined {
  const taken = new Set(given.values());
  const parameters = trainable(model).filter(([name]) => !taken.has(name));
  const classes = new Map<string, string[]>();
  for (const [key, shape] of shapes) {
    if (shape === undefined) continue;
    classes.set(`${shape}`, [...(classes.get(`${shape}`) ?? []), key]);
  }
  const names = (inOrder && model.ordered && orderedNames(groups, shapes, model, given)) || new Map<string, string>();
  for (const [shape, keys] of classes) {
    const fitting = parameters.filter(([, tensor]) => `${tensor.shape}` === shape);
    if (fitting.length < keys.length) return undefined;
    if (keys.every((key) => names.has(key))) continue;
    const ofOneGroup = groups.some(({ params }) => keys.every((key) => params.includes(key)));
    const told = fitting.length === 1 || (inOrder && model.ordered && ofOneGroup);
    if (!told || fitting.length !== keys.length) continue;
    for (const [i, key] of keys.entries()) names.set(key, fitting[i]![0]);
  }
  return names;
}

/** Every key's name, of parameters without state too, where the model's order leaves one answer. */
function orderedNames(
  groups: TorchOptimizer["groups"],
  shapes: ReadonlyMap<string, readonly number[] | undefined>,
  model: Model,
  given: ReadonlyMap<string, string>,
): Map<string, string> | undefined {
  const parameters = new Map(trainable(model));
  const keys = groups.map(({ params }) => params);
  return namesInOrder(keys, [...parameters.keys()], (key, name) => {
    const shape = shapes.get(key);
    return given.has(key) ? given.get(key) === name : !shape || `${shape}` === `${parameters.get(name)!.shape}`;
  });
}

function shapeOf(optimizer: TorchOptimizer, key: string, { tensors }: TensorSource): readonly number[] | undefined {
  const states = optimizer.state.get(key);
  for (const state of SHAPED_STATES) {
    const tensor = tensors.get(tensorOf(states?.get(state)) ?? "");
    if (tensor !== undefined) return tensor.shape;
  }
  // Adafactor's factors have the rows and the columns of their parameter.
  const [rows, columns] = ["row_var", "col_var"].map((state) => tensors.get(tensorOf(states?.get(state)) ?? ""));
  return rows && columns && [...rows.shape.slice(0, -1), columns.shape.at(-1)!];
}

/** Where the shapes prove another order than the model's; undefined where they do not. */
function disorderOf({ groups, prefix }: TorchOptimizer, names: ReadonlyMap<string, string>, model: Model) {
  if (!model.ordered) return undefined;
  const places = new Map([...model.parameters.keys()].map((name, i) => [name, i]));
  for (const { params } of groups) {
    const told = params.filter((key) => names.has(key));
    const wrong = told.findIndex(
      (key, i) => i > 0 && places.get(names.get(key)!)! < places.get(names.get(told[i - 1]!)!)!,
    );
    if (wrong < 0) continue;
    const [before, after] = [told[wrong - 1]!, told[wrong]!].map((key) => `${prefix}state.${key} is ${names.get(key)}`);
    return `its groups must list parameters in the model's order, the shapes say that ${before} and ${after}`;
  }
  return undefined;
}
