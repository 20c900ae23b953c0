/** Names as we give them: parameters keep theirs, an optimizer's state is called `<parameter>.<state>` with PyTorch's words for states. */
import { OptError } from "@opt/core";
import { type Json, redescribed, type SourceTensor, type TensorSource } from "../format/source";
import { withRole } from "../format/tensors";
import { badState, missing } from "../formats/bytes/errors";
import { byName, renamed, scalarTensor } from "../formats/bytes/foreign-tensor";
import { kerasNames } from "../formats/keras/names";
import { type NameOptions, type NamingContext, type Renaming, STRUCTURE_KEY } from "../formats/names/renaming";
import { scalarOf } from "../formats/names/scalars";
import { prefixedNames, suffixedNames } from "../formats/names/states";
import { type PythonTree, renameTensors } from "../formats/python/tree";
import { JOINED_FORMATS } from "../formats/torch/match";
import { torchNames } from "../formats/torch/names";
import { matchesPattern } from "../layout/layout";

const RULES: Record<string, (context: NamingContext) => Renaming | Promise<Renaming>> = {
  PyTorch: torchNames,
  "PyTorch DCP": torchNames,
  ...Object.fromEntries(JOINED_FORMATS.map((format) => [format, torchNames])),
  "MindSpore ckpt": prefixedNames,
  "MindSpore ranks": prefixedNames,
  Keras: kerasNames,
  "TF.js": suffixedNames,
  Paddle: suffixedNames,
};

/** So many lines of a map are shown; who needs more sees how they go on. */
const SHOWN = 12;

/**
 * The same checkpoint under our names; several files (a model and its optimizer) become one. `map` comes first; what it does not name goes
 * by the formats' own rules. Names are proven, never guessed: throws BAD_STATE, and says what a map has to name, where optimizer state
 * cannot be told, or what the user says is disproved; DUPLICATE where two names fall together; MISSING for a key that names nothing.
 */
export async function underOurNames(
  sources: TensorSource | readonly TensorSource[],
  naming: NameOptions = {},
): Promise<TensorSource> {
  const files = [sources].flat() as readonly TensorSource[];
  const whole = joinSources(files);
  const context = { ...naming, tensors: whole.tensors };
  const renamings: Renaming[] = [];
  for (const source of files) {
    const rule = RULES[source.format] ?? ((): Renaming => ({ names: new Map() }));
    renamings.push(await rule({ ...context, source, beside: files.filter((other) => other !== source) }));
  }
  const stateless = new Set(renamings.flatMap(({ stateless = [] }) => stateless));
  const mapped = mapNames(whole, naming.map ?? {}, stateless);
  rejectUnproven(renamings, mapped, whole, naming);
  const found = new Map(renamings.flatMap(({ names }) => [...names]));
  const nameOf = (name: string): string => mapped.get(name) ?? found.get(name) ?? name;
  const states = new Map(renamings.flatMap(({ follows = [] }) => [...follows]));
  const idle = new Set(whole.structure === undefined ? renamings.flatMap(({ kept = [] }) => [...kept]) : []);
  const active = [...whole.tensors.values()].filter(({ name }) => !idle.has(name));
  const tensors = renamed(active, nameOf, { path: whole.path, advice: "Use --map." });
  for (const [name, tensor] of tensors) tensors.set(name, withRole(tensor, tensors, states.get(name)));
  for (const step of await stepsOf(whole, renamings, tensors)) tensors.set(step.name, step);
  const { structure, unreadable, ...rest } = whole;
  const values = { ...whole.values };
  for (const [i, { values: own }] of renamings.entries()) {
    if (own === undefined) continue;
    for (const name of Object.keys(files[i]!.values)) delete values[name];
    Object.assign(values, own);
  }
  const tree = renameTensors((structure ?? null) as PythonTree, nameOf);
  if (structure !== undefined) values[STRUCTURE_KEY] = tree as Json;
  const unread = new Map([...(unreadable ?? [])].map(([name, reason]) => [nameOf(name), reason]));
  return { ...rest, tensors, values, unreadable: unread };
}

/** Files that belong together as one source; how each nests its names is lost where there are several. */
function joinSources(files: readonly TensorSource[]): TensorSource {
  const [first, ...others] = files;
  if (first === undefined) throw new OptError("BAD_ARGUMENT", "convert", "a path is needed, got none.", "Name a file.");
  if (others.length === 0) return first;
  const path = files.map((file) => file.path).join(" + ");
  const tensors = files.flatMap((file) => [...file.tensors.values()]);
  const step = files.find((file) => file.step !== undefined)?.step;
  return {
    format: [...new Set(files.map(({ format }) => format))].join(" + "),
    path,
    ...(step === undefined ? {} : { step }),
    tensors: byName(tensors, path),
    values: Object.assign({}, ...files.map(({ values }) => values)),
    unreadable: new Map(files.flatMap(({ unreadable }) => [...(unreadable ?? [])])),
    skipped: files.flatMap(({ skipped }) => skipped ?? []),
    async close() {
      for (const file of files) await file.close();
    },
  };
}

function rejectUnproven(
  renamings: readonly Renaming[],
  mapped: ReadonlyMap<string, string>,
  { tensors, path }: TensorSource,
  { parameterOrder }: NameOptions,
): void {
  const left = [...tensors.keys()].filter((name) => !mapped.has(name));
  const unproven = renamings
    .flatMap((renaming) => renaming.unproven ?? [])
    .filter(({ key, isStateless }) => isStateless || left.some((name) => isUnder(name, key)));
  if (unproven.length === 0) return;
  const lines = unproven.map(({ key, meaning }) => `${JSON.stringify(key)}: ${JSON.stringify(meaning)}`);
  const shown = lines.slice(0, SHOWN);
  const more = lines.length > SHOWN ? `, and ${lines.length - SHOWN} more` : "";
  const order =
    'where every group of a PyTorch optimizer lists its parameters in the model\'s order, say so (parameterOrder: "model", --parameter-order model)';
  const surplus = [...new Set(unproven.flatMap((one) => one.surplus ?? []))];
  const extra = [...tensors.keys()].filter((name) => surplus.some((pattern) => matchesPattern(pattern, name)));
  const some = extra.slice(0, 3).join(", ") + (extra.length > 3 ? ", ..." : "");
  const how = [
    "Give their names as a map of this form (--map), or the model's file beside it",
    ...(parameterOrder === undefined ? [order] : []),
    ...(extra.length > 0 ? [`leave out a copy of the model, ${some} (exclude: ${JSON.stringify(surplus)})`] : []),
    "or leave it out (--exclude).",
  ];
  throw badState(path, `nothing proves whose optimizer state this is: { ${shown.join(", ")}${more} }`, how.join("; "));
}

/** Whether a key is the name, or its beginning up to a dot or slash. */
function isUnder(name: string, key: string): boolean {
  return name.startsWith(key) && (name.length === key.length || /[./]/.test(name[key.length]!));
}

function mapNames(
  source: TensorSource,
  map: Readonly<Record<string, string>>,
  stateless: ReadonlySet<string>,
): Map<string, string> {
  const names = new Map<string, string>();
  // The longest key that fits comes last, and wins.
  for (const [from, to] of Object.entries(map).sort(([a], [b]) => a.length - b.length)) {
    const meant = [...source.tensors.keys()].filter((name) => isUnder(name, from));
    const some = [...source.tensors.keys()].slice(0, 3).join(", ");
    const problem = `the map names ${JSON.stringify(from)}`;
    if (meant.length === 0 && !stateless.has(from)) throw missing(source.path, problem, `There are ${some} and so on.`);
    for (const name of meant) {
      const rest = name.slice(from.length);
      names.set(name, to === "" ? rest.slice(1) : to + rest);
    }
  }
  return names;
}

/** Steps that are no tensors of their parameters yet: plain values, or else counted once for all. Ours are, so that a run can go on. */
async function stepsOf(
  source: TensorSource,
  renamings: readonly Renaming[],
  tensors: ReadonlyMap<string, SourceTensor>,
): Promise<SourceTensor[]> {
  const own = new Map(renamings.flatMap(({ steps }) => [...(steps ?? [])]));
  const counters = renamings.map(({ counter }) => source.tensors.get(counter ?? ""));
  const counter = counters.find((tensor) => tensor && /^I\d/.test(tensor.dtype));
  const count = counter && (await scalarOf(counter));
  const followed = new Set([...tensors.values()].map(({ follows }) => follows));
  return [...followed].flatMap((parameter) => {
    if (parameter === undefined || tensors.has(`${parameter}.step`)) return [];
    const step = own.get(parameter) ?? count;
    if (step === undefined) return [];
    const tensor = scalarTensor(`${parameter}.step`, step, source.path);
    return [redescribed(tensor, { role: "state", follows: parameter })];
  });
}
